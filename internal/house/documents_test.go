package house

import (
	"go/ast"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestPackagesHaveDocuments(t *testing.T) {
	_, files := parsed()
	documented := map[string]bool{}
	for _, file := range files {
		if !file.test {
			documented[file.dir] = documented[file.dir] || file.Doc.Text() != ""
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(documented)) {
		if !documented[dir] {
			t.Errorf("package in %s has no document", dir)
		}
	}
}

func TestExportedNamesHaveDocuments(t *testing.T) {
	set, files := parsed()
	for _, file := range files {
		if file.test || file.Name.Name == "main" {
			continue
		}
		for _, decl := range file.Decls {
			for _, name := range undocumented(decl, !strings.Contains(file.dir, "internal")) {
				t.Errorf("%s: %s has no document", set.Position(name.Pos()), name.Name)
			}
		}
	}
}

// The methods of wellKnown have the contracts of the standard library.
var wellKnown = []string{"Error", "String", "Unwrap"}

// undocumented returns the exported names that decl introduces without a comment. A comment of a
// group serves its constants and variables, not its types. A comment of an interface serves its
// only method. Fields do not count.
func undocumented(decl ast.Decl, public bool) (names []*ast.Ident) {
	check := func(name *ast.Ident, docs ...*ast.CommentGroup) {
		if name.IsExported() && !slices.ContainsFunc(docs, func(d *ast.CommentGroup) bool { return d.Text() != "" }) {
			names = append(names, name)
		}
	}
	if f, ok := decl.(*ast.FuncDecl); ok {
		if f.Recv == nil || ast.IsExported(receiver(f)) && !slices.Contains(wellKnown, f.Name.Name) {
			check(f.Name, f.Doc)
		}
	}
	group, ok := decl.(*ast.GenDecl)
	if !ok {
		return names
	}
	for _, spec := range group.Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			for _, name := range s.Names {
				check(name, group.Doc, s.Doc, s.Comment)
			}
		case *ast.TypeSpec:
			doc := s.Doc
			if !group.Lparen.IsValid() {
				doc = group.Doc
			}
			check(s.Name, doc)
			if i, ok := s.Type.(*ast.InterfaceType); ok && public && s.Name.IsExported() && len(i.Methods.List) > 1 {
				for _, method := range i.Methods.List {
					for _, name := range method.Names {
						check(name, method.Doc, method.Comment)
					}
				}
			}
		}
	}
	return names
}

var (
	// quoted is what stands between two back quotes.
	quoted = regexp.MustCompile("`([^`\n]+)`")
	// aFile is the name of a file or of a directory of the repository.
	aFile = regexp.MustCompile(`^[\w./-]*(/[\w.-]*|\.(go|lua|md|txtar|work))$`)
	// aName is a method or a field of a type, or what a package declares.
	aName = regexp.MustCompile(`^(\w+)\.([A-Za-z]\w*)$`)
	// inFile is the statement that a name is in a file.
	inFile = regexp.MustCompile("`([\\w.]+)` in\\s+`([\\w./]+\\.go)`")
)

// TestContributingNamesWhatIsThere looks for the files, and for the names with a dot, that
// CONTRIBUTING.md has in back quotes. A file may stand without its directory. Where the text says
// that something is in a file, it must be there.
func TestContributingNamesWhatIsThere(t *testing.T) {
	names := declaredNames()
	for _, match := range quoted.FindAllStringSubmatch(readText(t, "CONTRIBUTING.md"), -1) {
		switch text := match[1]; {
		case aFile.MatchString(text):
			part := "/" + strings.Trim(strings.TrimPrefix(text, "./"), "/") + "/"
			has := func(file string) bool { return strings.Contains("/"+file+"/", part) }
			if !slices.ContainsFunc(allFiles(), has) {
				t.Errorf("there is no %s", text)
			}
		case aName.MatchString(text) && !names[text] && text != "time.Duration":
			t.Errorf("nothing is called %s", text)
		}
	}
	for _, match := range inFile.FindAllStringSubmatch(readText(t, "CONTRIBUTING.md"), -1) {
		name, file := match[1][strings.LastIndex(match[1], ".")+1:], match[2]
		has := func(f string) bool {
			return strings.HasSuffix("/"+f, "/"+file) && strings.Contains(readText(t, f), name)
		}
		if !slices.ContainsFunc(allFiles(), has) {
			t.Errorf("%s does not have %s", file, name)
		}
	}
}

// declaredNames returns the names of the repository, each behind a dot and its type, or else its
// package.
func declaredNames() map[string]bool {
	names := map[string]bool{}
	_, files := parsed()
	for _, file := range files {
		of := file.Name.Name + "."
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				names[of+f.Name.Name] = true
				if f.Recv != nil {
					names[receiver(f)+"."+f.Name.Name] = true
				}
			}
		}
		for typ := range file.types {
			names[of+typ.Name.Name] = true
			if fields, ok := typ.Type.(*ast.StructType); ok {
				for _, field := range fields.Fields.List {
					for _, name := range field.Names {
						names[typ.Name.Name+"."+name.Name] = true
					}
				}
			}
		}
	}
	return names
}

// Each module is looked after by dependabot once: an adapter, which requires the lowest version of
// its library that works, for vulnerabilities alone.
func TestDependabotNamesEachModule(t *testing.T) {
	var others, adapters []string
	for _, name := range sources(".mod") {
		if folder := path.Dir(name); slices.Contains(modules(t, "adapter"), folder) {
			adapters = append(adapters, folder)
		} else {
			others = append(others, folder)
		}
	}
	folder := regexp.MustCompile(`(?m)^      - /(\S*)$`)
	entries := strings.Split(readText(t, ".github/dependabot.yml"), "package-ecosystem: gomod")[1:]
	if len(entries) != 2 {
		t.Fatalf("there are %d entries of modules, want those of adapters and the others", len(entries))
	}
	for i, want := range [][]string{adapters, others} {
		var is []string
		for _, line := range folder.FindAllStringSubmatch(entries[i], -1) {
			is = append(is, path.Clean(line[1]))
		}
		slices.Sort(is)
		slices.Sort(want)
		if !slices.Equal(is, want) {
			t.Errorf("an entry of .github/dependabot.yml has the folders\n%v\nand go.mod files are in\n%v", is, want)
		}
		if quiet := strings.Contains(entries[i], "open-pull-requests-limit: 0"); quiet != (i == 0) {
			t.Errorf("the entry of %v asks for newer versions: %v", want, !quiet)
		}
	}
}

// Workflows may read alone, unless a job says more. They name the actions of others by digest, with
// the version beside it. The targets, scripts and parts of proof that they run are there.
func TestWorkflowsRunWhatExists(t *testing.T) {
	files, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d workflows: %v", len(files), err)
	}
	var (
		uses   = regexp.MustCompile(`uses: (.*)`)
		pinned = regexp.MustCompile(`^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
		target = regexp.MustCompile(`make ([a-z-]+)`)
		script = regexp.MustCompile(`\bscripts/[\w-]+`)
		parts  = regexp.MustCompile(`(?m)^(?: +part: \[|all=\()(.*)[\])]$`)
	)
	makefile, all := readText(t, "Makefile"), ""
	for _, file := range files {
		text := readText(t, file)
		all += text
		if !strings.Contains(text, "\npermissions: read-all\n") {
			t.Errorf("%s does not begin with permissions: read-all", file)
		}
		for _, action := range uses.FindAllStringSubmatch(text, -1) {
			if !pinned.MatchString(action[1]) {
				t.Errorf("%s: %s is not an action by digest, with its version", file, action[1])
			}
		}
	}
	for _, found := range target.FindAllStringSubmatch(all, -1) {
		if !strings.Contains(makefile, "\n"+found[1]+":") {
			t.Errorf("there is no target for %q", found[0])
		}
	}
	for _, name := range script.FindAllString(all, -1) {
		if !slices.Contains(allFiles(), name) {
			t.Errorf("there is no %s", name)
		}
	}
	nightly, proof := parts.FindStringSubmatch(all), parts.FindStringSubmatch(readText(t, "scripts/proof"))
	if nightly == nil || proof == nil || strings.ReplaceAll(nightly[1], ",", "") != proof[1] {
		t.Errorf("the workflows run the parts %v, and scripts/proof has %v", nightly, proof)
	}
}

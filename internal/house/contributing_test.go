package house

import (
	"go/ast"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// quoted is what stands between two back quotes.
	quoted = regexp.MustCompile("`([^`\n]+)`")
	// aFile is the name of a file or of a directory of the repository.
	aFile = regexp.MustCompile(`^[\w./-]*(/[\w.-]*|\.(go|lua|md|txtar|work))$`)
	// aName is a method or a field of a type, or what a package declares.
	aName = regexp.MustCompile(`^(\w+)\.([A-Za-z]\w*)$`)
)

// TestContributingNamesWhatIsThere looks for the files, and for the names with a dot, that
// CONTRIBUTING.md has in back quotes. A file may stand without its directory.
func TestContributingNamesWhatIsThere(t *testing.T) {
	var paths []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && name == ".git" {
			return filepath.SkipDir
		}
		paths = append(paths, "/"+filepath.ToSlash(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := declaredNames()
	for _, match := range quoted.FindAllStringSubmatch(readText(t, "CONTRIBUTING.md"), -1) {
		switch text := match[1]; {
		case aFile.MatchString(text):
			end := "/" + strings.Trim(strings.TrimPrefix(text, "./"), "/")
			if !slices.ContainsFunc(paths, func(path string) bool { return strings.HasSuffix(path, end) }) {
				t.Errorf("there is no %s", text)
			}
		case aName.MatchString(text) && !names[text] && text != "time.Duration":
			t.Errorf("nothing is called %s", text)
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
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				names[of+decl.Name.Name] = true
				if decl.Recv != nil {
					names[receiver(decl)+"."+decl.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					typ, ok := spec.(*ast.TypeSpec)
					if !ok {
						continue
					}
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
		}
	}
	return names
}

package holdfast_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/holdfast-go/holdfast"

// mayImport lists what each package of the root module may import of this module. A new package
// needs a line here, so that each new import is a decision.
var mayImport = map[string][]string{
	".":                            {"internal/deadlock", "internal/engine", "internal/native", "internal/protocol", "internal/quorum", "internal/wire", "lockinfo", "store", "telemetry"},
	"dashboard":                    {".", "lockinfo"},
	"internal/deadlock":            {"internal/protocol"},
	"internal/engine":              {"internal/deadlock", "internal/protocol"},
	"internal/native":              {"internal/protocol", "internal/wire"},
	"internal/protocol":            {},
	"internal/protocol/memory":     {"internal/protocol"},
	"internal/quorum":              {"internal/protocol", "internal/wire"},
	"internal/testing/database":    {},
	"internal/testing/fault":       {},
	"internal/testing/lateness":    {"internal/engine", "internal/protocol"},
	"internal/testing/leak":        {},
	"internal/testing/leased":      {"."},
	"internal/testing/network":     {},
	"internal/testing/permissions": {".", "store"},
	"internal/testing/pubsubtest":  {"internal/testing/leak", "internal/testing/redisserver", "internal/wire", "store"},
	"internal/testing/redisserver": {},
	"internal/testing/states":      {".", "lockinfo"},
	"internal/wire":                {"internal/protocol", "store"},
	"lockinfo":                     {},
	"store":                        {},
	"storetest":                    {".", "internal/testing/fault", "internal/testing/leak", "internal/testing/leased", "lockinfo", "store"},
	"telemetry":                    {},
}

// No file may be longer than maxLines, so that each can be read in one go.
const maxLines = 600

type sourceFile struct {
	path string // from the root of the repository, with slashes
	dir  string // of path
	root bool   // belongs to the root module
	test bool
	*ast.File
}

// sources reads the Go files of all modules of the repository.
func sources(t *testing.T) (*token.FileSet, []sourceFile) {
	t.Helper()
	set, modules := token.NewFileSet(), map[string]bool{}
	var files []sourceFile
	walk(t, func(name string) {
		if path.Base(name) == "go.mod" {
			modules[path.Dir(name)] = true
		}
		if path.Ext(name) != ".go" {
			return
		}
		parsed, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, sourceFile{path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), File: parsed})
	})
	for i := range files {
		dir := files[i].dir
		for !modules[dir] {
			dir = path.Dir(dir)
		}
		files[i].root = dir == "."
	}
	return set, files
}

// walk calls f for every file of the repository that go would look at, and for those beside them.
func walk(t *testing.T, f func(name string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && name != "." && (base[0] == '.' || base[0] == '_' || base == "testdata") {
			return filepath.SkipDir
		}
		if !entry.IsDir() {
			f(filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestImports(t *testing.T) {
	set, files := sources(t)
	for _, file := range files {
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			at := set.Position(spec.Pos())
			if name == "crypto/sha1" && !file.test {
				t.Errorf("%s: SHA-1 fails under GODEBUG=fips140=only: write digests as constants, checked by a test", at)
			}
			if !file.root || file.test {
				continue
			}
			allowed, known := mayImport[file.dir]
			if !known {
				t.Errorf("%s: package %s is not in the table of allowed imports", at, file.dir)
				break
			}
			own, ours := strings.CutPrefix(name+"/", module+"/")
			switch {
			case ours:
				if own = strings.TrimSuffix(own, "/"); own == "" {
					own = "."
				}
				if !slices.Contains(allowed, own) {
					t.Errorf("%s: package %s must not import %s", at, file.dir, name)
				}
			case strings.Contains(strings.Split(name, "/")[0], "."):
				t.Errorf("%s: the root module requires nothing, not even %s", at, name)
			}
		}
	}
}

// The modules whose version users choose. Each may be of another version than the root.
var released = []string{"cmd/holdfast", "fence", "gocronholdfast", "holdfasttest", "otelholdfast", "profholdfast", "promholdfast", "redisstore", "rueidisstore", "valkeystore"}

// A released module that used internal packages of the root would break when its version and the
// root's differ. Packages that only tests import are tests.
func TestReleasedModulesImportNothingInternalOfTheRoot(t *testing.T) {
	set, files := sources(t)
	imported := map[string]bool{}
	for _, file := range files {
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			imported[name] = imported[name] || !file.test
		}
	}
	for _, file := range files {
		of := slices.IndexFunc(released, func(m string) bool { return file.dir == m || strings.HasPrefix(file.dir, m+"/") })
		onlyTests := strings.Contains(file.dir, "/internal/") && !imported[path.Join(module, file.dir)]
		if of < 0 || file.test || onlyTests {
			continue
		}
		for _, spec := range file.Imports {
			if name, _ := strconv.Unquote(spec.Path.Value); strings.HasPrefix(name, module+"/internal/") {
				t.Errorf("%s: module %s must not import %s", set.Position(spec.Pos()), released[of], name)
			}
		}
	}
}

// holdfasttest has a copy of the network inside a process, as it may import nothing internal of the
// root. UPDATE_TWIN=1 writes it anew.
func TestNetworkTwin(t *testing.T) {
	const from, to = "internal/testing/network", "holdfasttest/internal/network"
	names, err := filepath.Glob(filepath.Join(from, "*.go"))
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want = append([]byte("// Code generated from "+from+" by TestNetworkTwin; DO NOT EDIT.\n\n"), want...)
		at := filepath.Join(to, filepath.Base(name))
		if os.Getenv("UPDATE_TWIN") != "" {
			if err := os.WriteFile(at, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if has, err := os.ReadFile(at); err != nil || !bytes.Equal(bytes.ReplaceAll(has, []byte("\r\n"), []byte("\n")), bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))) {
			t.Errorf("%s is not what %s says (run UPDATE_TWIN=1 go test -run TestNetworkTwin .): %v", at, name, err)
		}
	}
}

func TestNoRequirements(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("require")) {
		t.Error("go.mod of the root module has a requirement")
	}
}

// The users of an adapter get all that it requires: the root module, its client, and the client's
// own requirements. Requirements of tests alone belong to a module that nobody requires, such as
// proof.
var requirements = map[string][]string{
	"fence": {module},
	"gocronholdfast": {module, "github.com/go-co-op/gocron/v2", "github.com/google/uuid", "github.com/jonboulle/clockwork",
		"github.com/robfig/cron/v3", "golang.org/x/exp"},
	"otelholdfast": {module, "github.com/go-logr/logr", "github.com/go-logr/stdr", "go.opentelemetry.io/auto/sdk",
		"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/trace"},
	"profholdfast": {module, "github.com/google/pprof"},
	"promholdfast": {module, "github.com/prometheus/client_golang", "github.com/beorn7/perks", "github.com/cespare/xxhash/v2",
		"github.com/munnerz/goautoneg", "github.com/prometheus/client_model", "github.com/prometheus/common",
		"github.com/prometheus/procfs", "golang.org/x/sys", "google.golang.org/protobuf"},
	"redisstore":   {module, "github.com/redis/go-redis/v9", "github.com/cespare/xxhash/v2", "go.uber.org/atomic"},
	"rueidisstore": {module, "github.com/redis/rueidis", "golang.org/x/sys"},
	"valkeystore":  {module, "github.com/valkey-io/valkey-go", "golang.org/x/sys"},
}

func TestAdaptersRequireTheirClientAlone(t *testing.T) {
	for adapter, want := range requirements {
		text, err := os.ReadFile(path.Join(adapter, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range requirement.FindAllSubmatch(text, -1) {
			got = append(got, string(line[1]))
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s requires %q, want %q", adapter, got, want)
		}
	}
}

// requirement is a line of go.mod that requires a module.
var requirement = regexp.MustCompile(`(?m)^(?:\t|require )(\S+) v\S+`)

func TestNoInit(t *testing.T) {
	set, files := sources(t)
	for _, file := range files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: no init functions", set.Position(f.Pos()))
			}
		}
	}
}

func TestNoSleepInTests(t *testing.T) {
	set, files := sources(t)
	for _, file := range files {
		if !file.test {
			continue
		}
		ast.Inspect(file.File, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
					t.Errorf("%s: a test waits for a signal or moves a fake clock, it does not sleep", set.Position(s.Pos()))
				}
			}
			return true
		})
	}
}

// Trap 33: a goroutine that a test leaves behind fails the tests of its package.
func TestEveryTestedPackageLooksForLeaks(t *testing.T) {
	_, files := sources(t)
	looks := map[string]bool{}
	for _, file := range files {
		if !file.test {
			continue
		}
		looks[file.dir] = looks[file.dir] || slices.ContainsFunc(file.Decls, func(decl ast.Decl) bool {
			f, ok := decl.(*ast.FuncDecl)
			return ok && f.Name.Name == "TestMain" && asksLeak(file, f)
		})
	}
	for _, dir := range slices.Sorted(maps.Keys(looks)) {
		if !looks[dir] {
			t.Errorf("the tests in %s need a TestMain that calls leak.Main", dir)
		}
	}
}

// asksLeak tells whether f calls a function of a package leak, or is in that package and calls its
// own.
func asksLeak(file sourceFile, f *ast.FuncDecl) (asks bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			switch of := call.Fun.(type) {
			case *ast.SelectorExpr:
				x, ok := of.X.(*ast.Ident)
				asks = asks || ok && x.Name == "leak"
			case *ast.Ident:
				asks = asks || file.Name.Name == "leak" && (of.Name == "Main" || of.Name == "Check")
			}
		}
		return !asks
	})
	return asks
}

func TestFileLength(t *testing.T) {
	walk(t, func(name string) {
		if ext := path.Ext(name); ext != ".go" && ext != ".lua" {
			return
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, more than %d", name, n, maxLines)
		}
	})
}

// An adapter has at most maxLines in all: what two adapters would have in common is below the seam.
func TestAdapterLength(t *testing.T) {
	lines := map[string]int{"redisstore": 0, "rueidisstore": 0, "valkeystore": 0}
	walk(t, func(name string) {
		if _, adapter := lines[path.Dir(name)]; !adapter || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines[path.Dir(name)] += bytes.Count(text, []byte("\n"))
	})
	for adapter, n := range lines {
		if n == 0 || n > maxLines {
			t.Errorf("%s has %d lines, want at most %d", adapter, n, maxLines)
		}
	}
}

func TestPackagesHaveDocuments(t *testing.T) {
	_, files := sources(t)
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
	set, files := sources(t)
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

// receiver returns the name of the type that f is a method of.
func receiver(f *ast.FuncDecl) string {
	name := ""
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if ident, ok := n.(*ast.Ident); ok && name == "" {
			name = ident.Name
		}
		return name == ""
	})
	return name
}

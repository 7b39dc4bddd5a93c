package house

import (
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
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

// All names of files are those from the root of the repository on.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(leak.Main(m))
}

// logRoot tells go test in which folder the names of files begin. It does not see the Chdir of
// TestMain, and would take an old result for one of files that have changed.
var logRoot = sync.OnceFunc(func() {
	if err := os.Chdir("."); err != nil {
		panic(err)
	}
})

const root = "github.com/holdfast-go/holdfast"

type sourceFile struct {
	path   string // from the root of the repository, with slashes
	dir    string // of path
	module string // the folder of its module; "." is the root module
	test   bool
	*ast.File
}

// parsed has the Go files of all modules. Tests share it, so they change nothing in it.
var parsed = sync.OnceValues(parseFiles)

// parseFiles reads the Go files of all modules of the repository.
func parseFiles() (*token.FileSet, []sourceFile) {
	set, modules := token.NewFileSet(), map[string]bool{}
	var files []sourceFile
	for _, name := range sources() {
		if path.Base(name) == "go.mod" {
			modules[path.Dir(name)] = true
		}
		if path.Ext(name) != ".go" {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			panic(err)
		}
		files = append(files, sourceFile{
			path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), File: file})
	}
	for i := range files {
		dir := files[i].dir
		for !modules[dir] {
			dir = path.Dir(dir)
		}
		files[i].module = dir
	}
	return set, files
}

func (f sourceFile) types(yield func(*ast.TypeSpec) bool) {
	for _, decl := range f.Decls {
		if group, ok := decl.(*ast.GenDecl); ok {
			for _, spec := range group.Specs {
				if typ, ok := spec.(*ast.TypeSpec); ok && !yield(typ) {
					return
				}
			}
		}
	}
}

// allFiles has the names of the files of the repository.
var allFiles = sync.OnceValue(func() (names []string) {
	logRoot()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name == ".git":
			return filepath.SkipDir
		case !entry.IsDir():
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return names
})

// leftOut is a file that go would not look at, or one beside it.
var leftOut = regexp.MustCompile(`(^|/)([._]|testdata/)`)

// sources returns the files of the repository with one of some endings, or all, that go would look
// at, and those beside them.
func sources(endings ...string) []string {
	return slices.DeleteFunc(slices.Clone(allFiles()), func(name string) bool {
		return leftOut.MatchString(name) || endings != nil && !slices.Contains(endings, path.Ext(name))
	})
}

// readText returns the text of a file, whatever ends its lines.
func readText(t *testing.T, name string) string {
	t.Helper()
	logRoot()
	text, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

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

// moduleLine is a line of go.work that names a module, with the marks behind it.
var moduleLine = regexp.MustCompile(`(?m)^\t\./?(\S*)(?: // (.*))?$`)

// modules returns the folders of the modules in go.work that have a mark there, as scripts/modules
// does.
func modules(t *testing.T, mark string) (folders []string) {
	t.Helper()
	for _, line := range moduleLine.FindAllStringSubmatch(readText(t, "go.work"), -1) {
		if slices.Contains(strings.Split(line[2], ", "), mark) {
			folders = append(folders, path.Clean(line[1]))
		}
	}
	if len(folders) == 0 {
		t.Fatalf("go.work has no module with the mark %q", mark)
	}
	return folders
}

// requirement is a line of go.mod that requires a module: its path, its version and any comment.
var requirement = regexp.MustCompile(`(?m)^(?:\t|require )(\S+) (v\S+)(.*)$`)

// libraries returns the modules of others that the code of a module imports.
func libraries(t *testing.T, folder string) (paths []string) {
	t.Helper()
	for _, line := range requirement.FindAllStringSubmatch(readText(t, path.Join(folder, "go.mod")), -1) {
		if line[3] == "" && !strings.HasPrefix(line[1], root) {
			paths = append(paths, line[1])
		}
	}
	return paths
}

// No file may be longer than maxLines, so that each can be read in one go.
const maxLines = 600

func TestFileLength(t *testing.T) {
	for _, name := range sources(".go", ".lua") {
		if n := countLines(t, name); n > maxLines {
			t.Errorf("%s has %d lines, more than %d", name, n, maxLines)
		}
	}
}

// A store has at most maxLines in all: what two of them would have in common is below the seam.
func TestStoreLength(t *testing.T) {
	for _, store := range modules(t, "store") {
		files, err := filepath.Glob(path.Join(store, "*.go"))
		lines := 0
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				lines += countLines(t, file)
			}
		}
		if err != nil || lines == 0 || lines > maxLines {
			t.Errorf("%s has %d lines, want at most %d: %v", store, lines, maxLines, err)
		}
	}
}

func countLines(t *testing.T, name string) int {
	t.Helper()
	return strings.Count(readText(t, name), "\n")
}

// The folder of package holdfast is the first page of the library.
func TestRootFolderIsShort(t *testing.T) {
	const most = 48
	if files, err := filepath.Glob("*.go"); err != nil || len(files) > most {
		t.Errorf("the root has %d Go files, want at most %d: %v", len(files), most, err)
	}
}

func TestNoInit(t *testing.T) {
	set, files := parsed()
	for _, file := range files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: no init functions", set.Position(f.Pos()))
			}
		}
	}
}

func TestNoSleepInTests(t *testing.T) {
	set, files := parsed()
	for _, file := range files {
		if !file.test {
			continue
		}
		ast.Inspect(file.File, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
					t.Errorf("%s: a test waits for a signal or moves a fake clock, it does not sleep",
						set.Position(s.Pos()))
				}
			}
			return true
		})
	}
}

// Trap 33: a goroutine that a test leaves behind fails the tests of its package.
func TestEveryTestedPackageLooksForLeaks(t *testing.T) {
	set, files := parsed()
	looks := map[string]bool{}
	for _, file := range files {
		if !file.test {
			continue
		}
		if _, seen := looks[file.dir]; !seen {
			looks[file.dir] = false
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == "TestMain" {
				looks[file.dir] = file.Name.Name == "leak" || strings.Contains(source(set, f), "leak.")
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(looks)) {
		if !looks[dir] {
			t.Errorf("the tests in %s need a TestMain that calls leak.Main", dir)
		}
	}
}

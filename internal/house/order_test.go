package house

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

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

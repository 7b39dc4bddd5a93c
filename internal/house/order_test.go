package house

import (
	"go/ast"
	"maps"
	"slices"
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
	_, files := parsed()
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

// asksLeak reports whether f calls a function of a package leak, or is in that package and calls
// its own.
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

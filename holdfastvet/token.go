package holdfastvet

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
)

// Token reports fencing tokens that nothing checks.
var Token = &analysis.Analyzer{
	Name:     "holdfasttoken",
	Doc:      "report fencing tokens that go nowhere but into a log",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run: func(pass *analysis.Pass) (any, error) {
		nodes(pass).WithStack([]ast.Node{(*ast.CallExpr)(nil)}, func(n ast.Node, push bool, stack []ast.Node) bool {
			call := n.(*ast.CallExpr)
			if push && isMethod(callee(pass, call), "Lease", "Token") {
				checkToken(pass, call, stack)
			}
			return true
		})
		return nil, nil
	},
}

// checkToken looks where the token of a call goes. The stack ends with the call.
func checkToken(pass *analysis.Pass, call *ast.CallExpr, stack []ast.Node) {
	if len(stack) < 2 {
		return
	}
	switch parent := stack[len(stack)-2].(type) {
	case *ast.ExprStmt:
		pass.Reportf(call.Pos(), "the fencing token is dropped")
	case *ast.AssignStmt:
		if len(parent.Lhs) != len(parent.Rhs) {
			return
		}
		for i, right := range parent.Rhs {
			id, ok := parent.Lhs[i].(*ast.Ident)
			if right != ast.Expr(call) || !ok {
				continue
			}
			v := variable(pass, id)
			switch {
			case id.Name == "_":
				pass.Reportf(call.Pos(), "the fencing token is dropped")
			case v != nil && v.Parent() != pass.Pkg.Scope() && isOnlyLogged(pass, stack, v):
				pass.Reportf(call.Pos(), "the fencing token goes nowhere but into a log: nothing refuses a late holder")
			}
		}
	}
}

// isOnlyLogged reports whether every use of a variable in the function of the stack is an argument
// of a call that prints or logs, and there is one.
func isOnlyLogged(pass *analysis.Pass, stack []ast.Node, v *types.Var) bool {
	logged := false
	var walk func(n ast.Node, logs bool) bool // reports whether there is no other use
	walk = func(n ast.Node, logs bool) bool {
		fine := true
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if !logs && isLog(pass, n) {
					for _, arg := range n.Args {
						fine = walk(arg, true) && fine
					}
					return false
				}
			case *ast.Ident:
				if pass.TypesInfo.Uses[n] == v {
					logged = logged || logs
					fine = fine && logs
				}
			}
			return fine
		})
		return fine
	}
	return walk(outermost(stack), false) && logged
}

func outermost(stack []ast.Node) ast.Node {
	for _, n := range stack {
		if fn, ok := n.(*ast.FuncDecl); ok {
			return fn
		}
	}
	return stack[0]
}

// isLog reports whether a call prints or logs: it is a function or method of log, log/slog, or
// fmt.Print, or a method that is named like one.
func isLog(pass *analysis.Pass, call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	fn, ok := pass.TypesInfo.Uses[s.Sel].(*types.Func)
	if !ok || fn.Pkg() == nil {
		return false
	}
	switch fn.Pkg().Path() {
	case "log", "log/slog":
		return true
	case "fmt":
		return strings.HasPrefix(fn.Name(), "Print")
	}
	return false
}

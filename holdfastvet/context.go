package holdfastvet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
)

// Context reports work under a lock that goes on when the lease is lost.
var Context = &analysis.Analyzer{
	Name:     "holdfastcontext",
	Doc:      "report calls in the function of Do, RDo and Run under another context than its own",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run: func(pass *analysis.Pass) (any, error) {
		nodes(pass).Preorder([]ast.Node{(*ast.CallExpr)(nil)}, func(n ast.Node) {
			call := n.(*ast.CallExpr)
			fn := callee(pass, call)
			if fn == nil || !runsUnderLease[fn.Name()] || len(call.Args) == 0 {
				return
			}
			if work, ok := call.Args[len(call.Args)-1].(*ast.FuncLit); ok {
				checkWork(pass, fn.Name(), work)
			}
		})
		return nil, nil
	},
}

// runsUnderLease are the methods whose last argument runs under a lease.
var runsUnderLease = map[string]bool{"Do": true, "RDo": true, "TryDo": true, "TryRDo": true, "Run": true}

// checkWork looks at the contexts of all calls in a function that runs under a lease.
func checkWork(pass *analysis.Pass, method string, work *ast.FuncLit) {
	ast.Inspect(work.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 || !isContext(pass.TypesInfo.TypeOf(call.Args[0])) || isDetached(pass, call) {
			return true
		}
		switch first := ast.Unparen(call.Args[0]).(type) {
		case *ast.Ident:
			v := variable(pass, first)
			if v != nil && !v.IsField() && (v.Pos() < work.Pos() || v.Pos() > work.End()) {
				pass.Reportf(first.Pos(), "%s does not end when the lease is lost: use the context that %s gives", first.Name,
					method)
			}
		case *ast.CallExpr:
			if name := backgroundName(pass, first); name != "" {
				pass.Reportf(first.Pos(), "context.%s does not end when the lease is lost: use the context that %s gives",
					name, method)
			}
		}
		return true
	})
}

func isContext(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == "Context" && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "context"
}

// backgroundName returns the name of the function if a call makes a context that never ends.
func backgroundName(pass *analysis.Pass, call *ast.CallExpr) string {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	fn, ok := pass.TypesInfo.Uses[s.Sel].(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != "context" || fn.Name() != "Background" && fn.Name() != "TODO" {
		return ""
	}
	return fn.Name()
}

// isDetached reports whether a call says that its result outlives the context: WithoutCancel.
func isDetached(pass *analysis.Pass, call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "WithoutCancel" && pass.TypesInfo.Uses[s.Sel] != nil
}

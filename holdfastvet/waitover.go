package holdfastvet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
)

// WaitOver reports waits whose end is taken for a busy lock.
var WaitOver = &analysis.Analyzer{
	Name:     "holdfastwaitover",
	Doc:      "report branches that take ErrWaitOver for a busy lock",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run: func(pass *analysis.Pass) (any, error) {
		nodes(pass).Preorder([]ast.Node{(*ast.IfStmt)(nil)}, func(n ast.Node) {
			branch := n.(*ast.IfStmt)
			err, test := waitOverTest(pass, branch.Cond)
			if err != nil && !mentions(pass, branch.Body, err) {
				pass.Reportf(test.Pos(), "ErrWaitOver says that the time is over, and not that another holds the lock: "+
					"test ErrHeld, or use %s in the branch", err.Name())
			}
		})
		return nil, nil
	},
}

// waitOverTest returns the variable of errors.Is(err, holdfast.ErrWaitOver), if a condition is no
// more than that.
func waitOverTest(pass *analysis.Pass, condition ast.Expr) (err *types.Var, test ast.Node) {
	call, ok := ast.Unparen(condition).(*ast.CallExpr)
	if !ok || len(call.Args) != 2 {
		return nil, nil
	}
	s, ok := call.Args[1].(*ast.SelectorExpr)
	if !ok {
		return nil, nil
	}
	target := pass.TypesInfo.Uses[s.Sel]
	if target == nil || target.Name() != "ErrWaitOver" || target.Pkg() == nil || target.Pkg().Path() != library {
		return nil, nil
	}
	return variable(pass, call.Args[0]), call
}

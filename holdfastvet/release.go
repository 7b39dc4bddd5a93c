package holdfastvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/cfg"
)

// Release reports leases that nobody releases.
var Release = &analysis.Analyzer{
	Name:     "holdfastrelease",
	Doc:      "report leases that some way through the function neither releases nor hands on",
	Requires: []*analysis.Analyzer{inspect.Analyzer, ctrlflow.Analyzer},
	Run: func(pass *analysis.Pass) (any, error) {
		flows := pass.ResultOf[ctrlflow.Analyzer].(*ctrlflow.CFGs)
		nodes(pass).Preorder([]ast.Node{(*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)}, func(n ast.Node) {
			if strings.HasSuffix(pass.Fset.File(n.Pos()).Name(), "_test.go") {
				return // its leases end with its client
			}
			switch fn := n.(type) {
			case *ast.FuncDecl:
				if fn.Body != nil {
					checkReleases(pass, fn.Body, flows.FuncDecl(fn))
				}
			case *ast.FuncLit:
				checkReleases(pass, fn.Body, flows.FuncLit(fn))
			}
		})
		return nil, nil
	},
}

// checkReleases looks at the leases that a function takes by itself, and not in a function inside.
func checkReleases(pass *analysis.Pass, body *ast.BlockStmt, flow *cfg.CFG) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok && takesLease(pass, call) {
				pass.Reportf(n.Pos(), "the lease of %s is dropped: nobody can release it", callee(pass, call).Name())
			}
		case *ast.AssignStmt:
			checkTaken(pass, n, flow)
		}
		return true
	})
}

// takesLease reports whether a call of the library returns a new lease.
func takesLease(pass *analysis.Pass, call *ast.CallExpr) bool {
	fn := callee(pass, call)
	if fn == nil || fn.Name() == "LeaseFrom" || fn.Name() == "LeasesFrom" {
		return false
	}
	results := fn.Signature().Results()
	return results.Len() == 2 && isType(results.At(0).Type(), "Lease")
}

// checkTaken looks at one assignment of a new lease.
func checkTaken(pass *analysis.Pass, assign *ast.AssignStmt, flow *cfg.CFG) {
	if len(assign.Rhs) != 1 || len(assign.Lhs) != 2 {
		return
	}
	call, ok := assign.Rhs[0].(*ast.CallExpr)
	if !ok || !takesLease(pass, call) {
		return
	}
	lease, ok := assign.Lhs[0].(*ast.Ident)
	if !ok {
		return // a field: it is stored
	}
	if lease.Name == "_" {
		pass.Reportf(lease.Pos(), "the lease of %s is dropped: nobody can release it", callee(pass, call).Name())
		return
	}
	v := variable(pass, lease)
	if v == nil || v.Parent() == pass.Pkg.Scope() {
		return
	}
	w := wayOut{pass: pass, lease: v, err: variable(pass, assign.Lhs[1]), seen: make(map[*cfg.Block]bool)}
	if end := w.from(flow, assign); end != nil {
		pass.Reportf(assign.Pos(), "%s is not released on every way out of the function", lease.Name)
		pass.Reportf(end.Pos(), "this return may be reached without %s.Release, of line %d", lease.Name,
			pass.Fset.Position(assign.Pos()).Line)
	}
}

// A wayOut looks for a way through a function that ends without a use of a lease that may release
// it.
type wayOut struct {
	pass       *analysis.Pass
	lease, err *types.Var // err is nil if the error is dropped
	seen       map[*cfg.Block]bool
}

// from returns the return that such a way ends with. Nil: there is none.
func (w *wayOut) from(flow *cfg.CFG, assign ast.Node) ast.Node {
	for _, block := range flow.Blocks {
		for i, n := range block.Nodes {
			if n == assign {
				return w.follow(block, block.Nodes[i+1:])
			}
		}
	}
	return nil
}

func (w *wayOut) follow(block *cfg.Block, rest []ast.Node) ast.Node {
	if slices.ContainsFunc(rest, w.hands) {
		return nil
	}
	if end := block.Return(); end != nil {
		return end
	}
	next := block.Succs
	if len(next) == 2 && len(block.Nodes) > 0 {
		if taken := w.heldBranch(block.Nodes[len(block.Nodes)-1]); taken != branchAny {
			next = next[taken : taken+1] // on the other branch there is no lease
		}
	}
	for _, b := range next {
		if !w.seen[b] {
			w.seen[b] = true
			if end := w.follow(b, b.Nodes); end != nil {
				return end
			}
		}
	}
	return nil
}

// The branches of a condition.
const (
	branchTrue = iota
	branchFalse
	branchAny
)

// heldBranch returns which branch of a condition is taken if there is a lease.
func (w *wayOut) heldBranch(condition ast.Node) int {
	switch c := condition.(type) {
	case *ast.ParenExpr:
		return w.heldBranch(c.X)
	case *ast.BinaryExpr:
		if c.Op != token.LAND && c.Op != token.LOR {
			return w.comparedBranch(c)
		}
		// "And" is true only if both are, and false if one is. Of "or" it is the reverse.
		ofOne, ofBoth := branchFalse, branchTrue
		if c.Op == token.LOR {
			ofOne, ofBoth = branchTrue, branchFalse
		}
		x, y := w.heldBranch(c.X), w.heldBranch(c.Y)
		switch {
		case x == ofOne || y == ofOne:
			return ofOne
		case x == ofBoth && y == ofBoth:
			return ofBoth
		}
	case *ast.CallExpr: // errors.Is(err, ...), errors.As(err, ...)
		if len(c.Args) == 2 && w.err != nil && variable(w.pass, c.Args[0]) == w.err {
			return branchFalse
		}
	}
	return branchAny
}

// comparedBranch is heldBranch for a comparison with nil.
func (w *wayOut) comparedBranch(c *ast.BinaryExpr) int {
	if id, ok := c.Y.(*ast.Ident); !ok || id.Name != "nil" || c.Op != token.EQL && c.Op != token.NEQ {
		return branchAny
	}
	held := token.NEQ // the lease, and not the error, if it is held
	switch variable(w.pass, c.X) {
	case nil:
		return branchAny
	case w.err:
		held = token.EQL
	case w.lease:
	default:
		return branchAny
	}
	if c.Op == held {
		return branchTrue
	}
	return branchFalse
}

// readers are the methods of a lease that leave it held.
var readers = map[string]bool{"Bind": true, "Check": true, "Done": true, "Downgrade": true, "Err": true, "Extend": true,
	"Name": true, "Owner": true, "String": true, "Token": true, "Tokens": true, "Until": true}

// hands reports whether a part of the function releases the lease, or hands it to others: it names
// the lease, and not only to call a method that leaves it held.
func (w *wayOut) hands(part ast.Node) (found bool) {
	ast.Inspect(part, func(n ast.Node) bool {
		if found {
			return false
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && readers[s.Sel.Name] && variable(w.pass, s.X) == w.lease {
				for _, arg := range n.Args {
					found = found || w.hands(arg)
				}
				return false
			}
		case *ast.BinaryExpr:
			if variable(w.pass, n.X) == w.lease {
				return false // compared
			}
		case *ast.Ident:
			found = w.pass.TypesInfo.ObjectOf(n) == w.lease
		}
		return true
	})
	return found
}

// Package holdfastvet finds mistakes in programs that use package holdfast, by reading them. The
// command is for go vet:
//
//	go install github.com/holdfast-go/holdfast/holdfastvet/cmd/holdfastvet@latest
//	go vet -vettool=$(which holdfastvet) ./...
//
// Its analyzers are those of [Analyzers]:
//
//   - holdfastrelease: a lease that some way through its function neither releases nor hands on. It
//     is renewed until the client is closed, and keeps everybody else out. Tests are left out, as
//     their leases end with their client.
//   - holdfastcontext: work under a lock with a context that does not end when the lease is lost.
//   - holdfastwaitover: ErrWaitOver taken for "another holds the lock". A server answered, and the
//     error matches ErrHeld if that is so.
//   - holdfasttoken: a fencing token that goes nowhere but into a log. Only what checks the token
//     keeps a late holder out.
//
// An analyzer reports what is wrong for sure, as far as one function shows it. A lease that is
// stored, returned, passed on or captured is somebody else's, and nothing is said of it.
package holdfastvet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

// library is the path of the package whose users are checked.
const library = "github.com/holdfast-go/holdfast"

// Analyzers returns all analyzers.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{Release, Context, WaitOver, Token}
}

// callee returns the function or method of the library that is called, and nil for any other call.
func callee(pass *analysis.Pass, call *ast.CallExpr) *types.Func {
	fn := typeutil.StaticCallee(pass.TypesInfo, call)
	if fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != library {
		return nil
	}
	return fn
}

// isMethod reports whether a function is a method of a type of the library, by both their names.
func isMethod(fn *types.Func, receiver, name string) bool {
	if fn == nil || fn.Name() != name {
		return false
	}
	recv := fn.Signature().Recv()
	return recv != nil && isType(recv.Type(), receiver)
}

func isType(t types.Type, name string) bool {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == name && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == library
}

// variable returns the variable that an expression names; nil: it is none.
func variable(pass *analysis.Pass, e ast.Expr) *types.Var {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil
	}
	v, _ := pass.TypesInfo.ObjectOf(id).(*types.Var)
	return v
}

// mentions reports whether a part of a program names a variable.
func mentions(pass *analysis.Pass, part ast.Node, v *types.Var) (found bool) {
	ast.Inspect(part, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && pass.TypesInfo.ObjectOf(id) == v {
			found = true
		}
		return !found
	})
	return found
}

// nodes returns the inspector of a pass, which goes through all files.
func nodes(pass *analysis.Pass) *inspector.Inspector {
	return pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
}

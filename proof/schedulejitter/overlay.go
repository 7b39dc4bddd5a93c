package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pausePath is the package that the rewritten sources call.
const pausePath = "github.com/holdfast-go/holdfast/proof/schedulejitter/pause"

// A place is where a goroutine may be held up.
type place struct {
	offset int
	behind bool // a statement on the same line
	server bool // it sends requests to a server
}

// overlay writes the sources of the repository at root, rewritten, into dir, with the file that
// tells the go command of them.
func overlay(root, dir string) (file string, err error) {
	replace := map[string]string{}
	number := 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && entry.Name()[0] == '.' || path == filepath.Join(root, "proof", "schedulejitter", "pause") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rewritten, places, err := rewrite(name, source, number)
		if err != nil || places == 0 {
			return err
		}
		number += places
		replace[path] = filepath.Join(dir, strings.ReplaceAll(name, string(filepath.Separator), "+"))
		return os.WriteFile(replace[path], rewritten, 0o600)
	})
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}

// rewrite puts calls into a source, numbered from first on, and tells how many. Each line stays
// where it is.
func rewrite(name string, source []byte, first int) (rewritten []byte, n int, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, 0, err
	}
	places := find(file, func(pos token.Pos) int { return set.Position(pos).Offset })
	if len(places) == 0 {
		return nil, 0, nil
	}
	at := set.Position(file.Name.End()).Offset
	rewritten = append(rewritten, source[:at]...)
	rewritten = fmt.Appendf(rewritten, "; import pause_ %q", pausePath)
	for i, p := range places {
		rewritten = append(rewritten, source[at:p.offset]...)
		at = p.offset
		switch {
		case p.server:
			rewritten = append(rewritten, " pause_.Server(); defer pause_.Server();"...)
		case p.behind:
			rewritten = fmt.Appendf(rewritten, "; pause_.Here(%d)", first+i)
		default:
			rewritten = fmt.Appendf(rewritten, " pause_.Here(%d);", first+i)
		}
	}
	return append(rewritten, source[at:]...), len(places), nil
}

// find returns the places of a file, in their order. Methods of one statement are none: most do
// nothing that can be late.
func find(file *ast.File, offset func(token.Pos) int) (places []place) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil && len(n.Body.List) > 1 && n.Name.Name != "TestMain" {
				places = append(places, place{offset: offset(n.Body.Lbrace + 1), server: sends(n)})
			}
		case *ast.FuncLit:
			if len(n.Body.List) > 0 {
				places = append(places, place{offset: offset(n.Body.Lbrace + 1)})
			}
		case *ast.CommClause:
			places = append(places, place{offset: offset(n.Colon + 1)})
		case *ast.ExprStmt:
			if unlocks(n.X) {
				places = append(places, place{offset: offset(n.End()), behind: true})
			}
		}
		return true
	})
	slices.SortFunc(places, func(a, b place) int { return a.offset - b.offset })
	return places
}

// sends tells whether a function is Do of a store.
func sends(f *ast.FuncDecl) bool {
	params := f.Type.Params.List
	if f.Recv == nil || f.Name.Name != "Do" || len(params) != 2 {
		return false
	}
	list, ok := params[1].Type.(*ast.ArrayType)
	if !ok {
		return false
	}
	switch of := list.Elt.(type) {
	case *ast.Ident:
		return of.Name == "Request"
	case *ast.SelectorExpr:
		return of.Sel.Name == "Request"
	}
	return false
}

func unlocks(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (method.Sel.Name == "Unlock" || method.Sel.Name == "RUnlock")
}

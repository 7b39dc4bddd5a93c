package house

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestPackagesHaveDocuments(t *testing.T) {
	_, files := parsed()
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
	set, files := parsed()
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

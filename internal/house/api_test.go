package house

import (
	"bytes"
	"go/ast"
	"go/build"
	"go/format"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestAPI compares the exported names with the agreed ones, so that a review shows a name that
// comes, goes or changes.
func TestAPI(t *testing.T) {
	const golden = "internal/house/testdata/api.txt"
	set, files := parseFiles() // of its own, as it takes out what is not exported
	released := modules(t, "released")
	system := build.Default
	system.GOOS, system.GOARCH, system.CgoEnabled = "linux", "amd64", false
	var lines []string
	for _, file := range files {
		internal := slices.Contains(strings.Split(file.dir, "/"), "internal")
		if file.test || internal || file.Name.Name == "main" || !slices.Contains(released, file.module) {
			continue
		}
		if ok, err := system.MatchFile(file.dir, path.Base(file.path)); err != nil || !ok {
			continue
		}
		ast.FileExports(file.File)
		for _, decl := range file.Decls {
			for _, line := range exported(set, decl) {
				lines = append(lines, file.Name.Name+": "+line)
			}
		}
	}
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	if os.Getenv("UPDATE_API") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	agreed := strings.Split(strings.TrimSuffix(readText(t, golden), "\n"), "\n")
	for _, line := range agreed {
		if !slices.Contains(lines, line) {
			t.Errorf("gone:  %s", line)
		}
	}
	for _, line := range lines {
		if !slices.Contains(agreed, line) {
			t.Errorf("added: %s", line)
		}
	}
	if t.Failed() {
		t.Log("if this is meant: UPDATE_API=1 go test -run TestAPI ./internal/house and a line in CHANGELOG.md")
	}
}

// exported writes what decl exports, one name on each line. Unexported names were taken out before,
// except methods of unexported types.
func exported(set *token.FileSet, decl ast.Decl) (lines []string) {
	add := func(parts ...string) { lines = append(lines, strings.Join(parts, "")) }
	if f, ok := decl.(*ast.FuncDecl); ok {
		if f.Recv == nil || ast.IsExported(receiver(f)) {
			add(source(set, &ast.FuncDecl{Recv: f.Recv, Name: f.Name, Type: f.Type}))
		}
		return lines
	}
	group := decl.(*ast.GenDecl)
	for _, spec := range group.Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			value := &ast.ValueSpec{Names: s.Names, Type: s.Type}
			if group.Tok == token.CONST { // what a variable starts with is no promise
				value.Values = s.Values
			}
			add(group.Tok.String(), " ", source(set, value))
		case *ast.TypeSpec:
			head := source(set, &ast.TypeSpec{Name: s.Name, TypeParams: s.TypeParams, Type: ast.NewIdent("_")})
			head = "type " + strings.TrimSuffix(head, " _")
			switch typ := s.Type.(type) {
			case *ast.StructType:
				add(head, " struct")
				for _, field := range typ.Fields.List {
					add(head, " struct, ", strings.TrimSpace(names(field)+" "+source(set, field.Type)))
				}
			case *ast.InterfaceType:
				add(head, " interface")
				for _, method := range typ.Methods.List {
					add(head, " interface, ", names(method), strings.TrimPrefix(source(set, method.Type), "func"))
				}
				if typ.Incomplete {
					add(head, " interface, unexported methods")
				}
			default:
				add("type ", source(set,
					&ast.TypeSpec{Name: s.Name, TypeParams: s.TypeParams, Assign: s.Assign, Type: s.Type}))
			}
		}
	}
	return lines
}

// names writes the names of field. An embedded field has none.
func names(field *ast.Field) string {
	text := ""
	for i, name := range field.Names {
		text += strings.Repeat(", ", min(i, 1)) + name.Name
	}
	return text
}

// source writes node in one line.
func source(set *token.FileSet, node ast.Node) string {
	var text bytes.Buffer
	if err := format.Node(&text, set, node); err != nil {
		panic(err)
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

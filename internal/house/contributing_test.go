package house

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// quoted is what stands between two back quotes.
	quoted = regexp.MustCompile("`([^`\n]+)`")
	// aFile is the name of a file or of a directory of the repository.
	aFile = regexp.MustCompile(`^[\w./-]*(/[\w.-]*|\.(go|lua|md|txtar|work))$`)
	// aName is a method or a field of a type, or what a package declares.
	aName = regexp.MustCompile(`^(\w+)\.([A-Za-z]\w*)$`)
)

// TestContributingNamesWhatIsThere looks for the files, and for the names with a dot, that
// CONTRIBUTING.md has in back quotes. A file may stand without its directory.
func TestContributingNamesWhatIsThere(t *testing.T) {
	names := declaredNames()
	for _, match := range quoted.FindAllStringSubmatch(readText(t, "CONTRIBUTING.md"), -1) {
		switch text := match[1]; {
		case aFile.MatchString(text):
			part := "/" + strings.Trim(strings.TrimPrefix(text, "./"), "/") + "/"
			has := func(file string) bool { return strings.Contains("/"+file+"/", part) }
			if !slices.ContainsFunc(allFiles(), has) {
				t.Errorf("there is no %s", text)
			}
		case aName.MatchString(text) && !names[text] && text != "time.Duration":
			t.Errorf("nothing is called %s", text)
		}
	}
}

// declaredNames returns the names of the repository, each behind a dot and its type, or else its
// package.
func declaredNames() map[string]bool {
	names := map[string]bool{}
	_, files := parsed()
	for _, file := range files {
		of := file.Name.Name + "."
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				names[of+f.Name.Name] = true
				if f.Recv != nil {
					names[receiver(f)+"."+f.Name.Name] = true
				}
			}
		}
		for typ := range file.types {
			names[of+typ.Name.Name] = true
			if fields, ok := typ.Type.(*ast.StructType); ok {
				for _, field := range fields.Fields.List {
					for _, name := range field.Names {
						names[typ.Name.Name+"."+name.Name] = true
					}
				}
			}
		}
	}
	return names
}

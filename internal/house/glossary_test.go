package house

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// nobodys are words that no reader of the field knows. They named things here once. The glossary in
// internal/engine/doc.go has the words that are used.
var nobodys = []string{
	"aboard", "depart", "ear", "ears", "hark", "homing", "homeless", "janitor", "lane", "owe",
	"stray", "strays", "tidied", "tidy", "turnstile", "unheard",
}

// nobodysNames are whole names, of words that are plain elsewhere.
var nobodysNames = []string{"giveback", "fate", "mending", "solo", "aboard", "hall", "voice"}

// A word that is nobody's is declared nowhere: not as a type, a function, a method or a field.
func TestNamesAreWordsOfTheField(t *testing.T) {
	set, files := parsed()
	for _, file := range files {
		check := func(id *ast.Ident) {
			words := split(id.Name)
			for _, word := range words {
				if slices.Contains(nobodys, word) {
					t.Errorf("%s: %s has the word %q, which is nobody's", set.Position(id.Pos()), id.Name, word)
				}
			}
			if slices.Contains(nobodysNames, strings.ToLower(id.Name)) {
				t.Errorf("%s: %s is a name that is nobody's", set.Position(id.Pos()), id.Name)
			}
		}
		ast.Inspect(file.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				check(n.Name)
			case *ast.FuncDecl:
				check(n.Name)
			case *ast.StructType:
				for _, field := range n.Fields.List {
					for _, name := range field.Names {
						check(name)
					}
				}
			}
			return true
		})
	}
}

// split cuts a name into its words, in small letters.
func split(name string) (words []string) {
	begin := 0
	for i, r := range name {
		if i > begin && (unicode.IsUpper(r) || r == '_') {
			words = append(words, strings.ToLower(strings.Trim(name[begin:i], "_")))
			begin = i
		}
	}
	return append(words, strings.ToLower(strings.Trim(name[begin:], "_")))
}

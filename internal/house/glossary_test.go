package house

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	// glossaryTerm is the term of a row of the glossary in the engine's document.
	glossaryTerm = regexp.MustCompile(`(?m)^//\t([a-z][a-z -]*?)  +\S`)
	// glossaryRow is a row of docs/glossary.md: the last cell has the nouns.
	glossaryRow = regexp.MustCompile(`(?m)^\| [a-z].* \| (.*) \|$`)
)

// glossary returns the nouns that may end the name of a type.
func glossary(t *testing.T) map[string]bool {
	nouns := map[string]bool{}
	for _, term := range glossaryTerm.FindAllStringSubmatch(readText(t, "internal/engine/doc.go"), -1) {
		words := strings.FieldsFunc(term[1], func(r rune) bool { return r == ' ' || r == '-' })
		nouns[words[len(words)-1]] = true
	}
	for _, row := range glossaryRow.FindAllStringSubmatch(readText(t, "docs/glossary.md"), -1) {
		for noun := range strings.SplitSeq(row[1], ", ") {
			nouns[noun[strings.LastIndex(noun, "-")+1:]] = true
		}
	}
	return nouns
}

// Each type of the product has a name that ends with a noun of the glossary, in the singular or the
// plural.
func TestTypesAreNounsOfTheGlossary(t *testing.T) {
	set, files := parsed()
	nouns, released := glossary(t), modules(t, "released")
	for _, file := range files {
		if file.test || !slices.Contains(released, file.module) || isForTests(file.dir) {
			continue
		}
		for typ := range file.types {
			if !isNoun(nouns, lastWord(typ.Name.Name)) {
				t.Errorf("%s: %s.%s ends with no noun of the glossary (docs/glossary.md)", set.Position(typ.Pos()),
					file.Name.Name, typ.Name.Name)
			}
		}
	}
}

// isForTests reports whether a package is only for tests.
func isForTests(dir string) bool {
	return dir == "storetest" || dir == "internal/house" || strings.HasPrefix(dir, "internal/testing/")
}

func isNoun(nouns map[string]bool, word string) bool {
	return nouns[word] || nouns[strings.TrimSuffix(word, "s")] || nouns[strings.TrimSuffix(word, "es")]
}

// lastWord returns the last word of a name in small letters. An abbreviation is one word.
func lastWord(name string) string {
	runes := []rune(name)
	begin := len(runes) - 1
	for begin > 0 && unicode.IsUpper(runes[len(runes)-1]) == unicode.IsUpper(runes[begin-1]) {
		begin--
	}
	if begin > 0 && !unicode.IsUpper(runes[begin]) {
		begin--
	}
	return strings.ToLower(string(runes[begin:]))
}

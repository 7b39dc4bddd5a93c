package house

import (
	"fmt"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// translations are the pages that exist in Chinese too. A change of the English page needs the same
// change there: the test below says what must be alike. UPDATE_TRANSLATIONS=1 copies the blocks of
// code, if there are as many on both pages.
var translations = []struct{ page, translated string }{
	{"README.md", "README.zh-CN.md"},
	{"docs/announce/post.md", "docs/announce/post.zh-CN.md"},
	{"docs/fencing.md", "docs/fencing.zh-CN.md"},
	{"docs/flight.md", "docs/flight.zh-CN.md"},
	{"docs/moving.md", "docs/moving.zh-CN.md"},
	{"docs/operations.md", "docs/operations.zh-CN.md"},
	{"docs/shards.md", "docs/shards.zh-CN.md"},
	{"docs/steps.md", "docs/steps.zh-CN.md"},
}

// A pageSection is a heading with what stands below it, up to the next heading.
type pageSection struct {
	heading  string   // in the language of the page; all else must be alike
	level    int      // of the heading
	code     []string // blocks, byte for byte
	links    []string // in any order: another language says things in another order
	pictures []string
	rows     []string // of tables: the numbers of their cells
	items    int      // of lists
	spans    []string // text between back quotes, in any order
	numbers  []string // in prose and tables, in any order
}

var (
	pageHeading = regexp.MustCompile(`(?m)^(#+) .*$`)
	aPicture    = regexp.MustCompile(`(?s)!\[[^\]]*\]\(([^)\s]+)\)`)
	aRow        = regexp.MustCompile(`(?m)^\|.*\|$`)
	anItem      = regexp.MustCompile(`(?m)^ *([-*]|\d+[.]) `)
	aSpan       = regexp.MustCompile("(?s)`([^`]+)`")
	numberInIt  = regexp.MustCompile(`\d+(?:[.,]\d+)*`)
)

// sectionsOf takes a page apart. Links to a page and to its translation count as the same, and so do
// links to headings at the same place of both.
func sectionsOf(t *testing.T, page string) (sections []pageSection) {
	t.Helper()
	text := readText(t, page)
	var blocks []string
	text = codeBlock.ReplaceAllStringFunc(text, func(block string) string {
		blocks = append(blocks, block)
		return fmt.Sprintf("CODE-%d-", len(blocks)-1)
	})
	starts := append([][]int{{0, 0}}, pageHeading.FindAllStringIndex(text, -1)...)
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		below := text[at[1]:end]
		heading := text[at[0]:at[1]]
		s := pageSection{heading: heading, level: strings.Count(heading, "#"), items: len(anItem.FindAllString(below, -1))}
		below = regexp.MustCompile(`CODE-(\d+)-`).ReplaceAllStringFunc(below, func(string) string {
			s.code, blocks = append(s.code, blocks[0]), blocks[1:]
			return ""
		})
		for _, found := range aPicture.FindAllStringSubmatch(below, -1) {
			s.pictures = append(s.pictures, found[1])
		}
		below = aPicture.ReplaceAllString(below, "")
		for _, found := range inlineLink.FindAllStringSubmatch(below, -1) {
			target, anchor, hasAnchor := strings.Cut(found[1], "#")
			link := strings.Replace(target, ".zh-CN.md", ".md", 1)
			if hasAnchor && !strings.Contains(target, "://") {
				file := page
				if target != "" {
					file = path.Join(path.Dir(page), target)
				}
				link += fmt.Sprintf("#%d", anchorsOf(t, file)[anchor])
			}
			s.links = append(s.links, link)
		}
		below = regexp.MustCompile(`\]\([^)\s]+\)`).ReplaceAllString(below, "]")
		for _, row := range aRow.FindAllString(below, -1) {
			s.rows = append(s.rows, fmt.Sprintf("%d cells", strings.Count(strings.ReplaceAll(row, `\|`, ""), "|")-1))
		}
		for _, found := range aSpan.FindAllStringSubmatch(below, -1) {
			s.spans = append(s.spans, strings.Join(strings.Fields(found[1]), " "))
		}
		s.numbers = numberInIt.FindAllString(anItem.ReplaceAllString(aSpan.ReplaceAllString(below, ""), ""), -1)
		for _, list := range [][]string{s.links, s.spans, s.numbers} {
			slices.Sort(list)
		}
		sections = append(sections, s)
	}
	return sections
}

// A translated page has the sections of its page, with the same code, links, pictures, tables and
// names, and each page leads to the other.
func TestTranslationsAreInStep(t *testing.T) {
	for _, pair := range translations {
		if os.Getenv("UPDATE_TRANSLATIONS") != "" {
			copyBlocks(t, pair.page, pair.translated)
		}
		page, translated := sectionsOf(t, pair.page), sectionsOf(t, pair.translated)
		if len(page) != len(translated) {
			t.Errorf("%s has %d headings, %s has %d", pair.page, len(page), pair.translated, len(translated))
		}
		for i := range min(len(page), len(translated)) {
			is, want := reflect.ValueOf(translated[i]), reflect.ValueOf(page[i])
			for j := 1; j < is.NumField(); j++ {
				if is, want := fmt.Sprint(is.Field(j)), fmt.Sprint(want.Field(j)); is != want {
					t.Errorf("%s: below %q the %s are\n%v\nand below %q of %s\n%v\nTranslate what changed. "+
						"UPDATE_TRANSLATIONS=1 copies code.", pair.translated, translated[i].heading,
						reflect.TypeFor[pageSection]().Field(j).Name, is, page[i].heading, pair.page, want)
				}
			}
		}
	}
}

// copyBlocks puts the blocks of code of a page into its translation.
func copyBlocks(t *testing.T, page, translated string) {
	t.Helper()
	blocks, text := codeBlock.FindAllString(readText(t, page), -1), readText(t, translated)
	if n := len(codeBlock.FindAllString(text, -1)); n != len(blocks) {
		t.Errorf("%s has %d blocks of code, %s has %d", page, len(blocks), translated, n)
		return
	}
	text = codeBlock.ReplaceAllStringFunc(text, func(string) (block string) {
		block, blocks = blocks[0], blocks[1:]
		return block
	})
	if err := os.WriteFile(translated, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

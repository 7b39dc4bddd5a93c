package main

import (
	_ "embed"
	"strings"
)

// inChinese says that the output is in Chinese. It is set before a step begins.
var inChinese bool

//go:embed chinese.txt
var chineseText string

// chinese has the texts of the program, and its formats, in Chinese.
var chinese = readTranslations(chineseText)

// readTranslations reads pairs of lines, which stand between empty lines or comments.
func readTranslations(pairs string) map[string]string {
	translated := map[string]string{}
	for pair := range strings.SplitSeq(strings.ReplaceAll(pairs, "\r\n", "\n"), "\n\n") {
		if english, other, ok := strings.Cut(strings.TrimSuffix(pair, "\n"), "\n"); ok {
			translated[english] = other
		}
	}
	return translated
}

// wantsChinese reports whether an environment asks for Chinese, as other programs read it: the
// first of LC_ALL, LC_MESSAGES and LANG that is set decides.
func wantsChinese(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if value := getenv(name); value != "" {
			return strings.HasPrefix(value, "zh")
		}
	}
	return false
}

// text is a text, or a format, in the language of the output.
func text(english string) string {
	if translated, ok := chinese[english]; ok && inChinese {
		return translated
	}
	return english
}

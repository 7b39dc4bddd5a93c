package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// Each text that the program shows has a translation with the same verbs, and each translation is
// of such a text.
func TestEachTextIsInChinese(t *testing.T) {
	shown := map[string]bool{string(holdfast.LossExpired): true, string(holdfast.LossMaxHold): true}
	for _, step := range steps {
		shown[step.title] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	argument := map[string]int{"say": 0, "line": 0, "text": 0, "together": 0, "apart": 0, "verdictf": 1}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			called := ""
			switch f := call.Fun.(type) {
			case *ast.Ident:
				called = f.Name
			case *ast.SelectorExpr:
				called = f.Sel.Name
			}
			if i, ok := argument[called]; ok && i < len(call.Args) {
				if literal, ok := call.Args[i].(*ast.BasicLit); ok {
					english, _ := strconv.Unquote(literal.Value)
					shown[english] = true
				}
			}
			return true
		})
	}
	words, verbs := regexp.MustCompile(`[a-z]{2}`), regexp.MustCompile(`%(?:\[\d+\])?([a-z.0-9]*[dsvf])`)
	verbsOf := func(format string) (list []string) {
		for _, found := range verbs.FindAllStringSubmatch(format, -1) {
			list = append(list, found[1])
		}
		slices.Sort(list) // another language says things in another order
		return list
	}
	for english := range shown {
		translated, ok := chinese[english]
		if !ok && words.MatchString(verbs.ReplaceAllString(english, "")) && english != "Lock ..." &&
			english != "Unlock ..." && english != "Release ..." && english != "Release -> %s" {
			t.Errorf("%q has no translation", english)
		}
		if ok && !slices.Equal(verbsOf(english), verbsOf(translated)) {
			t.Errorf("%q and %q have other verbs", english, translated)
		}
	}
	for english := range chinese {
		if !shown[english] {
			t.Errorf("%q is a translation of nothing that is shown", english)
		}
	}
}

// --lang decides, and else the environment.
func TestLanguage(t *testing.T) {
	defer func() { inChinese = false }()
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"none":               {nil, nil, "A herd"},
		"LANG":               {nil, map[string]string{"LANG": "zh_CN.UTF-8"}, "惊群"},
		"LC_ALL before LANG": {nil, map[string]string{"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "A herd"},
		"--lang zh":          {[]string{"--lang", "zh"}, nil, "惊群"},
		"--lang before LANG": {[]string{"--lang", "en"}, map[string]string{"LANG": "zh_TW"}, "A herd"},
		"another language":   {[]string{"--lang", "fr"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), c.args, func(name string) string { return c.env[name] }, &out)
			if (err != nil) != (c.want == "") || !strings.Contains(out.String(), c.want) {
				t.Errorf("got %v, %s", err, &out)
			}
		})
	}
}

// A step in Chinese has no English words but calls, commands and names.
func TestStepInChinese(t *testing.T) {
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("processes are started: make proof runs it")
	}
	defer func() { inChinese = false }()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--lang", "zh", "5"}, noEnv, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"复现了 bug：", "没有问题：", "从未有两个进程同时进入", "谁在临界区里", "-> 被 B 持有"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}

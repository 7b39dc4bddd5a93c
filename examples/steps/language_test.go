package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
)

var (
	shownTexts = regexp.MustCompile(`\b(?:(?:say|line|text)\(|verdictf\([^"]*)"((?:[^"\\]|\\.)*)"`)
	verbsOf    = regexp.MustCompile(`%(?:\[\d+\])?([a-z.0-9]*[dsvf])|\{[a-z]+\}`)
)

// Each text that the program shows has a translation with the same verbs, and each translation is
// of such a text. Calls and commands have none.
func TestEachTextIsInChinese(t *testing.T) {
	shown := map[string]string{string(holdfast.LossExpired): "", string(holdfast.LossMaxHold): ""}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range shownTexts.FindAllStringSubmatch(string(source), -1) {
			if !strings.HasSuffix(name, "_test.go") {
				shown[strings.ReplaceAll(found[1], `\n`, "\n")] = ""
			}
		}
	}
	for english := range chinese {
		if _, ok := shown[english]; !ok {
			t.Errorf("%q is a translation of nothing that is shown", english)
		}
	}
	for english := range shown {
		shown[english] = chinese[english]
	}
	for _, step := range steps {
		for _, line := range slices.Concat(story{step.title}, step.naive, step.holdfast) {
			switch head, _, _ := strings.Cut(line.english, " "); {
			case line == step.title, slices.Contains([]string{"say", "if", "together", "apart"}, head):
				shown[line.english] = line.chinese
			}
		}
	}
	verbs := func(format string) (list []string) {
		for _, found := range verbsOf.FindAllStringSubmatch(format, -1) {
			list = append(list, found[1])
		}
		slices.Sort(list) // another language says things in another order
		return list
	}
	calls := regexp.MustCompile(`^(\w+ \.\.\.|\w+ -> %s|[^a-z]*)$`)
	for english, translated := range shown {
		if translated == "" && !calls.MatchString(verbsOf.ReplaceAllString(english, "%s")) &&
			regexp.MustCompile("[a-z]{2}").MatchString(verbsOf.ReplaceAllString(english, "")) ||
			translated != "" && !slices.Equal(verbs(english), verbs(translated)) {
			t.Errorf("%q is translated as %q", english, translated)
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

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// All that the command is made of has a license that is on the list.
func TestLicensesAreAllowed(t *testing.T) {
	parts, err := listParts("../../cmd/holdfast")
	fatal.If(t, err)
	var text bytes.Buffer
	for _, p := range parts {
		if _, err := p.write(&text); err != nil {
			t.Error(err)
		}
	}
	for _, want := range []string{"std go", "github.com/redis/go-redis/v9 v", "github.com/prometheus/procfs v"} {
		if !strings.Contains(text.String(), "\n"+want) {
			t.Errorf("%s is none of the parts", want)
		}
	}
}

func TestLicensesAreRefused(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	fatal.If(t, err)
	known, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "LICENSE"))
	fatal.If(t, err)
	const gpl = `This program is free software: you can redistribute it and/or modify it under the terms of the GNU
General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your
option) any later version. This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY;
without even the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU General Public
License for more details.`
	for name, c := range map[string]struct{ file, text, want string }{
		"allowed":        {"LICENSE", string(known), ""},
		"in British":     {"licence.txt", string(known), ""},
		"not allowed":    {"COPYING", gpl, "GPL"},
		"two, one of it": {"LICENSE", string(known) + "\n" + gpl, "GPL"},
		"unknown":        {"LICENSE", "You may look at this code, and not use it.", "no known license"},
		"empty":          {"LICENSE", "", "no known license"},
		"only a notice":  {"NOTICE", string(known), "has no license"},
		"in a Go file":   {"license.go", string(known), "has no license"},
	} {
		root := t.TempDir()
		dir := filepath.Join(root, "below")
		fatal.If(t, os.Mkdir(dir, 0o700))
		fatal.If(t, os.WriteFile(filepath.Join(root, c.file), []byte(c.text), 0o600))
		p := part{path: "example.com/part", version: "v1.0.0"}
		fatal.If(t, p.addFiles(root, dir))
		_, err := p.write(io.Discard)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestAddToSBOM(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sbom.json")
	write := func(component string) {
		text := `{"bomFormat":"CycloneDX","metadata":{"component":{"name":"` + own + `/cmd/holdfast"}},
			"components":[{"name":"` + component + `","version":"v1"}]}`
		fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("example.com/part")
	fatal.If(t, addToSBOM(path, map[string][]string{"example.com/part": {"BSD-3-Clause", "MIT"}}))
	text, err := os.ReadFile(path)
	var compact bytes.Buffer
	if err == nil {
		err = json.Compact(&compact, text)
	}
	const want = `{"bomFormat":"CycloneDX","components":[{"licenses":[{"license":{"id":"BSD-3-Clause"}},` +
		`{"license":{"id":"MIT"}}],"name":"example.com/part","version":"v1"}],"metadata":{"component":` +
		`{"licenses":[{"license":{"id":"Apache-2.0"}}],"name":"` + own + `/cmd/holdfast"}}}`
	if err != nil || strings.TrimSpace(compact.String()) != want {
		t.Errorf("%v\ngot  %s\nwant %s", err, &compact, want)
	}
	write("example.com/unknown")
	if err := addToSBOM(path, nil); err == nil || !strings.Contains(err.Error(), "example.com/unknown") {
		t.Errorf("a component that is not known: %v", err)
	}
}

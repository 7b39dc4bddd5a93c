package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// texts are the texts of a picture, each with its classes, and its elements that are none.
func texts(t *testing.T, svg string) (shown map[string]string, rectangles int) {
	t.Helper()
	shown, decoder := map[string]string{}, xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return shown, rectangles
		}
		fatal.If(t, err)
		start, ok := token.(xml.StartElement)
		switch {
		case ok && start.Name.Local == "rect":
			rectangles++
		case ok && start.Name.Local == "text":
			var text struct {
				Class string `xml:"class,attr"`
				Text  string `xml:",chardata"`
			}
			fatal.If(t, decoder.DecodeElement(&text, &start))
			shown[text.Text] = text.Class
		}
	}
}

func TestDrawScreenKeepsColorsAndColumns(t *testing.T) {
	svg, err := drawScreen("a <title>", "\x1b[31mred \x1b[1mand bold\x1b[0m plain <b>&\n\x1b[2m  faint\n still\x1b[0;7mswapped\x1b[27m\x1b[39m after\n\x1b[32m██░\x1b[m end\n")
	fatal.If(t, err)
	shown, rectangles := texts(t, svg)
	for text, class := range map[string]string{
		"a <title>": "faint", "red": "red", "and bold": "red bold", "plain <b>&": "", "faint": "faint",
		"still":   "faint",
		"swapped": "swapped", "after": "", "end": "",
	} {
		if got, ok := shown[text]; !ok || got != class {
			t.Errorf("%q is drawn as %q, %v, want %q", text, got, ok, class)
		}
	}
	if rectangles != 4 { // the ground, what is swapped, and two parts of the bar
		t.Errorf("%d rectangles", rectangles)
	}
	if !strings.Contains(svg, `x="39.4" y="75" textLength`) && !strings.Contains(svg, `x="31.6" y="73"`) {
		t.Errorf("the second line does not begin in column 2:\n%s", svg)
	}
}

func TestDrawScreenRefusesWhatItCannotDraw(t *testing.T) {
	if _, err := drawScreen("t", "\x1b[44mx"); err == nil || !strings.Contains(err.Error(), "44") {
		t.Errorf("a colored ground: %v", err)
	}
}

// The pictures in docs/ are of the programs, need nothing from elsewhere, and name no machine.
func TestPicturesOfThePages(t *testing.T) {
	for name, want := range map[string]string{"demo.svg": "ctrl-c or q leaves", "top.svg": "scheduler"} {
		svg, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		fatal.If(t, err)
		shown, _ := texts(t, string(svg))
		found := false
		for text := range shown {
			found = found || strings.Contains(text, want)
		}
		if !found {
			t.Errorf("%s does not show %q", name, want)
		}
		for _, part := range []string{"<script", "<image", "href", "url(", "@import"} {
			if strings.Contains(string(svg), part) {
				t.Errorf("%s has %s", name, part)
			}
		}
		if host, err := os.Hostname(); err == nil && len(host) > 5 && strings.Contains(string(svg), host) {
			t.Errorf("%s names %s", name, host)
		}
	}
}

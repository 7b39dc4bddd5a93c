package main

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The measures of a picture, in pixels.
const (
	charWidth, lineHeight = 7.8, 18
	edge, titleHeight     = 16, 34
)

// escape is an escape sequence that sets colors and weights, which is all that tmux prints.
var escape = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// A pen is how text looks. The color is a class of the style sheet, and empty for the usual one.
type pen struct {
	color                  string
	bold, underline, swaps bool
}

var colors = map[int]string{31: "red", 32: "green", 33: "yellow", 34: "blue", 35: "magenta", 36: "cyan", 39: ""}

// set is the pen after an escape sequence.
func (p pen) set(codes string) (pen, error) {
	for code := range strings.SplitSeq(codes, ";") {
		n, err := strconv.Atoi(code)
		if code == "" {
			n, err = 0, nil
		}
		color, isColor := colors[n]
		switch {
		case err != nil:
			return p, err
		case n == 0:
			p = pen{}
		case n == 1:
			p.bold = true
		case n == 2:
			p.color = "faint"
		case n == 4:
			p.underline = true
		case n == 7:
			p.swaps = true
		case isColor:
			p.color = color
		case n == 22:
			p.bold = false
			if p.color == "faint" {
				p.color = ""
			}
		case n == 24:
			p.underline = false
		case n == 27:
			p.swaps = false
		case n == 49: // the ground is never colored
		default:
			return p, fmt.Errorf("a terminal that sets %d is not drawn", n)
		}
	}
	return p, nil
}

// class is the pen as classes of the style sheet.
func (p pen) class() string {
	var classes []string
	for _, c := range []struct {
		name string
		has  bool
	}{{p.color, p.color != ""}, {"bold", p.bold}, {"underline", p.underline}, {"swapped", p.swaps}} {
		if c.has {
			classes = append(classes, c.name)
		}
	}
	return strings.Join(classes, " ")
}

// A span is text of one pen within a line.
type span struct {
	pen
	text   string
	column int
}

// spans takes a line apart. The pen goes on from line to line.
func spans(line string, p pen) (all []span, after pen, err error) {
	column := 0
	add := func(text string) {
		if text != "" {
			all = append(all, span{p, text, column})
			column += utf8.RuneCountInString(text)
		}
	}
	rest := line
	for at := escape.FindStringSubmatchIndex(rest); at != nil; at = escape.FindStringSubmatchIndex(rest) {
		add(rest[:at[0]])
		if p, err = p.set(rest[at[2]:at[3]]); err != nil {
			return nil, p, err
		}
		rest = rest[at[1]:]
	}
	add(rest)
	return all, p, nil
}

const styleSheet = `
    text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #e6edf3; white-space: pre }
    .faint { fill: #9198a1 } .red { fill: #ff7b72 } .green { fill: #3fb950 } .yellow { fill: #d29922 }
    .blue { fill: #79c0ff } .magenta { fill: #d2a8ff } .cyan { fill: #56d4dd }
    .bold { font-weight: 600 } .underline { text-decoration: underline }
    text.swapped { fill: #0d1117 } rect.swapped { fill: #c9d1d9 }
`

// drawScreen is a screen of a terminal as an SVG.
func drawScreen(title, screen string) (string, error) {
	lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
	var body strings.Builder
	var p pen
	widest := utf8.RuneCountInString(title) + 12
	for row, line := range lines {
		all, after, err := spans(line, p)
		if err != nil {
			return "", err
		}
		p = after
		for _, r := range all {
			widest = max(widest, r.column+utf8.RuneCountInString(strings.TrimRight(r.text, " ")))
			drawSpan(&body, r, titleHeight+edge/2+row*lineHeight)
		}
	}
	width, height := float64(widest)*charWidth+2*edge, titleHeight+edge+len(lines)*lineHeight
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&svg, "  <title>%s</title>\n  <style>%s  </style>\n", escaped(title), styleSheet)
	fmt.Fprintf(&svg, `  <rect x="0.5" y="0.5" width="%.0f" height="%d" rx="8" fill="#161b22" stroke="#484f58"/>`+"\n",
		width-1, height-1)
	for i, color := range []string{"#f85149", "#d29922", "#3fb950"} {
		fmt.Fprintf(&svg, `  <circle cx="%d" cy="17" r="5.5" fill="%s"/>`+"\n", 20+i*18, color)
	}
	fmt.Fprintf(&svg, `  <text class="faint" x="%.0f" y="21.5" text-anchor="middle">%s</text>`+"\n", width/2,
		escaped(title))
	fmt.Fprintf(&svg, "%s</svg>\n", body.String())
	return svg.String(), nil
}

// drawSpan draws a span in the line whose upper edge is at y. Each part has its width, so that
// columns stand below each other in any font. Blocks are rectangles: fonts draw them with gaps.
func drawSpan(to *strings.Builder, r span, y int) {
	if r.swaps {
		fmt.Fprintf(to, `  <rect class="swapped" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", x(r.column), y,
			float64(utf8.RuneCountInString(r.text))*charWidth, lineHeight)
	}
	for _, part := range regexp.MustCompile(`█+|░+|[^█░]+`).FindAllString(r.text, -1) {
		n := utf8.RuneCountInString(part)
		column := r.column
		r.column += n
		switch shown := strings.TrimRight(part, " "); {
		case strings.HasPrefix(part, "█"):
			fmt.Fprintf(to, `  <rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", r.class(), x(column), y+3,
				float64(n)*charWidth, lineHeight-6)
		case strings.HasPrefix(part, "░"):
			fmt.Fprintf(to, `  <rect fill="#30363d" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", x(column), y+3,
				float64(n)*charWidth, lineHeight-6)
		case shown != "":
			lead := utf8.RuneCountInString(shown) - utf8.RuneCountInString(strings.TrimLeft(shown, " "))
			text := strings.TrimLeft(shown, " ")
			fmt.Fprintf(to, `  <text class="%s" x="%.1f" y="%d" textLength="%.1f">%s</text>`+"\n",
				r.class(), x(column+lead), y+13, float64(utf8.RuneCountInString(text))*charWidth, escaped(text))
		}
	}
}

func x(column int) float64 { return edge + float64(column)*charWidth }

func escaped(text string) string {
	var out strings.Builder
	if err := xml.EscapeText(&out, []byte(text)); err != nil {
		return ""
	}
	return out.String()
}

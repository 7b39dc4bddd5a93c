package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the pages of man into a directory",
		Hidden: true, // for packagers
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("got %s, want one directory: holdfast man DIR", cli.CountArgs(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
				return cli.Usagef("DIR %q: it must be a directory that is there", args[0])
			}
			date := time.Now()
			if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
				seconds, err := strconv.ParseInt(epoch, 10, 64)
				if err != nil {
					return cli.Usagef("SOURCE_DATE_EPOCH %q: it must be a number of seconds", epoch)
				}
				date = time.Unix(seconds, 0)
			}
			return writePages(newRoot(), args[0], date.UTC().Format(time.DateOnly))
		},
	}
}

// writePages writes the pages of a command and of those below it that help shows.
func writePages(cmd *cobra.Command, dir, date string) error {
	cmd.InitDefaultHelpFlag()
	p := &manPage{}
	p.writeCommand(cmd, date)
	if err := os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), []byte(p.String()), 0o644); err != nil {
		return err
	}
	for _, c := range shownCommands(cmd) {
		if err := writePages(c, dir, date); err != nil {
			return err
		}
	}
	return nil
}

// shownCommands returns the commands below one that have a page.
func shownCommands(cmd *cobra.Command) (shown []*cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() {
			shown = append(shown, c)
		}
	}
	return shown
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// environment is what the commands read. The first two are read by those that have --redis.
var environment = [][2]string{
	{"REDIS_URL", "the URL of the server, or of the masters of a quorum, if no --redis is given"},
	{cli.NoEvictVariable, "if it is true, the server keeps the keys of locks from eviction; it needs Redis 8.12"},
	{cli.HistoryVariable, "if it is set, what happens to locks is written at the server, and it keeps about so many entries: see history"},
	{"NO_COLOR", "if it is set, text has no colours"},
	{"TERM", "if it is dumb, text has no colours, and nothing is shown on a full screen"},
}

// A manPage is written in the language of roff.
type manPage struct{ strings.Builder }

func (p *manPage) writeCommand(cmd *cobra.Command, date string) {
	name := pageName(cmd)
	fmt.Fprintf(p, ".TH %s 1 %s %q %q\n.nh\n", roff(strings.ToUpper(name)), date, roff(cmd.Root().Version), "holdfast")
	fmt.Fprintf(p, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n", roff(name), roff(cmd.Short), roff(cmd.UseLine()))
	p.WriteString(".SH DESCRIPTION\n")
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	text, codes, _ := strings.Cut(text, "Exit codes: ")
	p.writeText(strings.TrimSpace(text))
	p.writeCommands(shownCommands(cmd))
	p.WriteString(".SH OPTIONS\n")
	cmd.Flags().VisitAll(p.writeFlag)
	if codes != "" {
		p.writeCodes(codes)
	}
	p.WriteString(".SH ENVIRONMENT\n")
	for i, variable := range environment {
		if i > 1 || cmd.Flags().Lookup("redis") != nil {
			p.writeItem(roff(variable[0]), variable[1])
		}
	}
	if cmd.Example != "" {
		p.WriteString(".SH EXAMPLES\n")
		p.writeVerbatim(cmd.Example)
	}
	if cmd.HasParent() {
		fmt.Fprintf(p, ".SH SEE ALSO\n.BR %s (1)\n", roff(pageName(cmd.Parent())))
	}
}

func (p *manPage) writeCommands(commands []*cobra.Command) {
	if len(commands) == 0 {
		return
	}
	p.WriteString(".SH COMMANDS\n")
	groups := commands[0].Parent().Groups()
	for _, group := range append(groups, &cobra.Group{Title: "Other:"}) {
		if len(groups) > 0 {
			fmt.Fprintf(p, ".SS %s\n", roff(strings.TrimSuffix(group.Title, ":")))
		}
		for _, c := range commands {
			if c.GroupID == group.ID {
				p.writeItem(roff(pageName(c))+"\\fR(1)", c.Short)
			}
		}
	}
}

func (p *manPage) writeFlag(flag *pflag.Flag) {
	if flag.Hidden {
		return
	}
	value, usage := pflag.UnquoteUsage(flag)
	term := roff("--" + flag.Name)
	if flag.Shorthand != "" {
		term = roff("-"+flag.Shorthand) + "\\fR, \\fB" + term
	}
	if value != "" {
		term += " \\fI" + roff(value) + "\\fR"
	}
	switch flag.DefValue {
	case "", "false", "0", "0s", "[]":
	default:
		usage += " (default " + flag.DefValue + ")"
	}
	p.writeItem(term, usage)
}

// writeCodes writes the exit codes, of which a semicolon ends each, and the text behind them.
func (p *manPage) writeCodes(text string) {
	p.WriteString(".SH EXIT STATUS\n")
	list, rest, _ := strings.Cut(text, "\n\n")
	for code := range strings.SplitSeq(strings.Join(strings.Fields(list), " "), "; ") {
		number, meaning, _ := strings.Cut(code, " ")
		if strings.Trim(number, "0123456789+n") != "" {
			number, meaning = "other", code
		}
		p.writeItem(roff(number), meaning)
	}
	p.writeText(rest)
}

// writeItem writes a term in bold, which is roff, and its text.
func (p *manPage) writeItem(term, text string) {
	fmt.Fprintf(p, ".TP\n\\fB%s\\fR\n", term)
	p.writeText(text)
}

// writeText writes paragraphs. One with a line that begins with a space stays as it is.
func (p *manPage) writeText(text string) {
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			p.WriteString(".PP\n")
		}
		switch {
		case paragraph == "":
		case strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n "):
			p.writeVerbatim(paragraph)
		default:
			p.WriteString(roff(cli.Wrap(paragraph, 72)) + "\n")
		}
	}
}

func (p *manPage) writeVerbatim(text string) {
	p.WriteString(".EX\n" + roff(strings.ReplaceAll(text, "\t", "    ")) + "\n.EE\n")
}

// roff returns a text in which roff finds nothing special.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "\"", `\(dq`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

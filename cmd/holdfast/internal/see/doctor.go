package see

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/doctor"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
)

// Doctor examines the servers of locks.
type Doctor struct {
	cli.Connection
	cli.Output
	TTL time.Duration // of the locks
}

var doctorFormats = []string{cli.FormatTable, cli.FormatJSON}

func newDoctor() *cobra.Command {
	d := &Doctor{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what endangers a lock, and say what to change",
		Args:  cli.NoArgs,
		RunE:  cli.UntilSignal(d.Run),
	}
	d.Connection.AddFlags(cmd)
	d.Output.AddFlags(cmd, doctorFormats...)
	cli.DurationVar(cmd.Flags(), &d.TTL, "ttl", "", 15*time.Second, "of the locks: a lease is to live through a fail-over")
	return cmd
}

// Run prints the findings. A *cli.ExitError without a text says that a lock is endangered.
func (d *Doctor) Run(ctx context.Context) error {
	var c cli.Checklist
	d.Output.Check(&c, doctorFormats...)
	d.Connection.Check(&c)
	cli.CheckTTL(&c, &d.Connection, d.TTL)
	if err := c.Err(); err != nil {
		return err
	}
	report, err := doctor.Examine(ctx, doctor.Target{URL: d.Redis, TLS: d.TLS, Prefix: d.Prefix, TTL: d.TTL})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return d.connectionError(err)
	}
	if d.Format == cli.FormatJSON {
		err = d.PrintDocument(report)
	} else {
		err = d.table(report)
	}
	if err != nil {
		return err
	}
	if report.Endangered {
		return cli.Exit(cli.ExitEndangered)
	}
	return nil
}

// connectionError is the error of the first contact.
func (d *Doctor) connectionError(err error) error {
	at := server.Redact(d.Redis)
	if errors.As(err, new(redis.Error)) {
		for _, denial := range []string{"NOPERM", "NOAUTH", "WRONGPASS", "ERR AUTH", "ERR invalid password"} {
			if strings.HasPrefix(err.Error(), denial) {
				return cli.Exitf(cli.ExitDenied, "the server at %s refuses this client: %w", at, err)
			}
		}
		return cli.Exitf(cli.ExitNoServer, "the server at %s cannot serve: %w", at, err)
	}
	if hint := cli.TLSHint(context.Background(), d.Redis); hint != "" {
		return cli.Exitf(cli.ExitNoServer, "no answer from %s: %s", at, hint)
	}
	return cli.Exitf(cli.ExitNoServer, "no answer from a server at %s: %w", at, err)
}

func (d *Doctor) table(report doctor.Report) error {
	styles := map[doctor.Level]show.Style{doctor.OK: show.Good, doctor.Note: show.Plain, doctor.Danger: show.Bad,
		doctor.Unknown: show.Warning}
	table := &show.Table{
		Out: d.Out, Colors: d.Page().Colors,
		Columns: []show.Column{{Title: "LEVEL"}, {Title: "CHECK"}, {Title: "SERVER"}, {Title: "FOUND"}},
	}
	room := roomForFindings(report, d.Page().Width)
	for _, f := range report.Findings {
		first := []show.Cell{{Text: string(f.Level), Style: styles[f.Level]}, {Text: f.Check}, {Text: f.Server}, {}}
		for _, line := range linesOf(f, room) {
			first[3].Text = line
			if err := table.Row(first...); err != nil {
				return err
			}
			first = make([]show.Cell, len(first))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(d.Out, "\n%d danger, %d unknown, %d note, %d ok\n",
		report.Count(doctor.Danger), report.Count(doctor.Unknown), report.Count(doctor.Note), report.Count(doctor.OK))
	return err
}

// roomForFindings is how wide a text of a finding may be on a terminal of a width; 0: as wide as it
// is.
func roomForFindings(report doctor.Report, width int) int {
	if width == 0 {
		return 0
	}
	const least = 40
	check, server := 0, 0
	for _, f := range report.Findings {
		check, server = max(check, len(f.Check)), max(server, len(f.Server))
	}
	return max(width-len("unknown")-check-server-3*len("  "), least)
}

// linesOf are the texts of a finding, wrapped where there is room for so many columns; 0: each is
// one line.
func linesOf(f doctor.Finding, room int) (lines []string) {
	add := func(indent, text string) {
		for i, line := range strings.Split(cli.Wrap(text, room-len(indent)-2), "\n") {
			if i == 1 {
				indent += "  "
			}
			lines = append(lines, indent+line)
		}
	}
	if room == 0 {
		add = func(indent, text string) { lines = append(lines, indent+text) }
	}
	add("", f.Found)
	if f.Means != "" {
		add("  ", "means: "+f.Means)
	}
	if f.Change != "" {
		add("  ", "change: "+f.Change)
	}
	return lines
}

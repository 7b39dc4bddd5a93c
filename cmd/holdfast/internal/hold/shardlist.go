package hold

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/shard"
)

// longestLook is how long the shards are read, as Watch waits for a server that is away.
const longestLook = 20 * time.Second

// A ShardList shows which process has which shard of a name.
type ShardList struct {
	cli.Connection
	cli.Output
	Name string
	Of   int // how many shards there are; 0: as many as the processes that take part say
}

// A shardEntry is what JSON tells of a shard.
type shardEntry struct {
	Name  string         `json:"name"`
	Shard int            `json:"shard"`
	Hold  *lockinfo.Hold `json:"hold"` // null: nobody holds it
}

// Run looks once.
func (l *ShardList) Run(ctx context.Context) error {
	var c cli.Checklist
	cli.CheckName(&c, l.Name)
	checkShards(&c, &l.Connection, l.Name)
	c.Check(l.Of >= 0 && l.Of <= mostShards, "--of %d: it must be 1 to %d", l.Of, mostShards)
	l.Output.Check(&c, cli.ListFormats...)
	client, end, err := l.Open(c, holdfast.Config{})
	if err != nil {
		return err
	}
	defer end()
	info, err := client.Inspect(ctx, l.Name)
	if err != nil {
		return l.Failure(err)
	}
	n := shard.Number(info)
	if n > 0 && l.Of > 0 && n != l.Of {
		return cli.Usagef("--of %d: %q has %d shards", l.Of, l.Name, n)
	}
	if n = max(n, l.Of); n == 0 {
		l.Note("nobody takes part in %q; --of N shows its shards all the same", l.Name)
		return l.print(nil)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, longestLook, cli.Exitf(cli.ExitNoServer,
		"the shards of %q were not read within %v: the server is away, or too slow", l.Name, longestLook))
	defer cancel()
	for holds, err := range shard.New(client, l.Name, n).Watch(ctx) {
		if err != nil {
			return l.Failure(err)
		}
		return l.print(holds)
	}
	return nil
}

// print prints the shards in the order of their numbers.
func (l *ShardList) print(holds []lockinfo.Hold) error {
	table, entries := l.Page().Table(show.ShardColumns), []shardEntry{}
	for i, hold := range holds {
		entry := shardEntry{l.Name, i, &hold}
		if hold.Token == 0 {
			entry.Hold = nil
		}
		entries = append(entries, entry)
		_ = table.Row(show.ShardRow(i, hold)...) // Flush tells of an error
	}
	switch l.Format {
	case cli.FormatTable:
		return table.Flush()
	case cli.FormatJSON:
		return l.PrintDocument(struct {
			Name   string       `json:"name"`
			Shards []shardEntry `json:"shards"`
		}{l.Name, entries})
	}
	for _, entry := range entries {
		if err := l.PrintDocument(entry); err != nil {
			return err
		}
	}
	return nil
}

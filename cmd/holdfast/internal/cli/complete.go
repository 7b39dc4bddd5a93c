package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/snapshot"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// The limits of a completion: a shell waits for it, and shows it.
const (
	completionTime = time.Second
	mostCompleted  = 100
)

// CompleteNames completes a first argument with names that are in use. Without an answer in time
// there is none, and no message: the shell shows the line that is being typed.
func CompleteNames(c *Connection) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return collectCompletions(c, func(ctx context.Context, client *holdfast.Client, add func(string) bool) {
			for info, err := range client.List(ctx, holdfast.ListOptions{Pattern: escapeGlob(typed) + "*"}) {
				if err != nil || info.State() != lockinfo.StateForeign && show.Text(info.Name) == info.Name &&
					!add(info.Name) {
					return
				}
			}
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteNameAndCommand completes a NAME, and leaves the command behind it to the shell.
func CompleteNameAndCommand(c *Connection) cobra.CompletionFunc {
	names := CompleteNames(c)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return names(cmd, args, typed)
	}
}

// CompleteWaiters completes a NAME, and after it a waiter of the name, with its label.
func CompleteWaiters(c *Connection) cobra.CompletionFunc {
	names := CompleteNames(c)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return names(cmd, args, typed)
		}
		return collectCompletions(c, func(ctx context.Context, client *holdfast.Client, add func(string) bool) {
			for w, err := range client.Queue(ctx, args[0]) {
				if err != nil || strings.HasPrefix(w.ID, typed) && !add(w.ID+"\t"+show.Text(w.Label)) {
					return
				}
			}
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

// collectCompletions collects what find adds in time. It does not wait for the end of a client
// whose server is silent: the program ends anyway.
func collectCompletions(c *Connection, find func(ctx context.Context, client *holdfast.Client,
	add func(string) bool)) []string {
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	client, _, err := server.Client(c.Redis, c.TLS, holdfast.Config{Prefix: c.Prefix})
	if err != nil {
		return nil
	}
	found := make(chan string)
	go func() {
		defer close(found)
		find(ctx, client, func(text string) bool {
			select {
			case found <- text:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	var out []string
	for seen := snapshot.NewWindow(); ; {
		select {
		case text, more := <-found:
			if !more || len(out) == mostCompleted {
				return out
			}
			if seen.Add(text) {
				out = append(out, text)
			}
		case <-ctx.Done():
			return out
		}
	}
}

// escapeGlob is a text in which a glob of Redis finds nothing special.
func escapeGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

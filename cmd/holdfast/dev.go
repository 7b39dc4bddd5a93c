package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/spf13/cobra"
)

// Dev is the in-memory server, for trying the other commands without Redis.
type Dev struct {
	Addr string // of the loopback interface
	Out  io.Writer
}

// Validate refuses addresses that others could reach: the server asks nobody for a password.
func (d *Dev) Validate() error {
	host, port, err := net.SplitHostPort(d.Addr)
	if err != nil {
		return &usageError{fmt.Errorf("--addr %q: it must be HOST:PORT", d.Addr)}
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return &usageError{fmt.Errorf("--addr %q: port %q is none: 0 to 65535", d.Addr, port)}
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return &usageError{fmt.Errorf("--addr %s: only loopback addresses, such as 127.0.0.1:6379: this server is for trying out, on one host", d.Addr)}
	}
	return nil
}

// Run serves until ctx ends, and returns nil when it was interrupted: that is how it is meant to end.
func (d *Dev) Run(ctx context.Context) error {
	if err := d.Validate(); err != nil {
		return err
	}
	s, err := server.EmbedAt(d.Addr)
	if err != nil {
		return fmt.Errorf("--addr %s: %w", d.Addr, err)
	}
	fmt.Fprintf(d.Out, `%s, at %s
It forgets everything when it ends (Ctrl-C). In another terminal:

  holdfast run --redis %s nightly -- sleep 60
`, s.Name, s.URL, s.URL)
	<-ctx.Done()
	err = s.Stop()
	if cause := context.Cause(ctx); !errors.Is(cause, errInterrupted) {
		err = errors.Join(err, cause)
	}
	return err
}

func newDev() *cobra.Command {
	d := &Dev{}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Serve from memory, to try run without Redis",
		Long: `An in-memory server on a loopback port, for trying holdfast run, or a program of yours, without Redis. Its clock runs:
locks expire as they should. It asks for no password, keeps nothing, and forgets everything when it ends.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := interruptible(cmd.Context())
			defer cancel()
			d.Out = cmd.OutOrStdout()
			return d.Run(ctx)
		},
	}
	cmd.Flags().StringVar(&d.Addr, "addr", "127.0.0.1:6379", "loopback address to listen on; port 0: any free one")
	return cmd
}

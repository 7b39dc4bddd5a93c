package try

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/spf13/cobra"
)

// Dev serves from memory, so that users can try the other commands without Redis.
type Dev struct {
	Addr string // of the loopback interface
	Out  io.Writer
}

// Validate refuses addresses that other hosts could reach: the server asks for no password.
func (d *Dev) Validate() error {
	host, port, err := net.SplitHostPort(d.Addr)
	if err != nil {
		return cli.Usagef("--addr %q: it must be HOST:PORT", d.Addr)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return cli.Usagef("--addr %q: port %q must be 0 to 65535", d.Addr, port)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return cli.Usagef("--addr %q: host %q must be a loopback address, such as 127.0.0.1: this server is for trials on one host", d.Addr, host)
	}
	return nil
}

// Run serves until ctx ends. An interrupt is the normal end, and not an error.
func (d *Dev) Run(ctx context.Context) error {
	if err := d.Validate(); err != nil {
		return err
	}
	s, err := server.EmbedAt(d.Addr)
	if err != nil {
		return fmt.Errorf("--addr %s: %w%s", d.Addr, err,
			cli.PortHint(err, "; a Redis or Valkey that listens there will do as well, and port 0 is any free one"))
	}
	at := ""
	if s.URL != cli.DefaultURL {
		at = " --redis " + s.URL
	}
	fmt.Fprintf(d.Out, `%s, at %s
It forgets everything when it ends (Ctrl-C). In other terminals:

  holdfast run%s -v nightly -- sleep 60
  holdfast serve%s
`, s.Name, s.URL, at, at)
	<-ctx.Done()
	err = s.Stop()
	if cause := context.Cause(ctx); !errors.Is(cause, cli.ErrInterrupted) {
		err = errors.Join(err, cause)
	}
	return err
}

func newDev() *cobra.Command {
	d := &Dev{}
	cmd := &cobra.Command{
		Use:    "dev",
		Short:  "Serve from memory, to try run without Redis",
		Args:   cli.NoArgs,
		PreRun: func(cmd *cobra.Command, _ []string) { d.Out = cmd.OutOrStdout() },
		RunE:   cli.UntilSignal(d.Run),
	}
	cmd.Flags().StringVar(&d.Addr, "addr", "127.0.0.1:6379", "loopback address to listen on; port 0: any free one")
	return cmd
}

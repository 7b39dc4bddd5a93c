package main

import (
	"io"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/spf13/cobra"
)

// Completion prints the script with which a shell completes commands and flags.
type Completion struct {
	Shell string
	Out   io.Writer
}

// Run prints the script. The error for an unknown shell names the known ones.
func (c *Completion) Run() error {
	root := newRoot()
	switch c.Shell {
	case "bash":
		return root.GenBashCompletionV2(c.Out, true)
	case "zsh":
		return root.GenZshCompletion(c.Out)
	case "fish":
		return root.GenFishCompletion(c.Out, true)
	}
	return cli.Usagef("no completion for %q: there is bash, zsh and fish", c.Shell)
}

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print the completion script of a shell",
		Long: `Print the script with which a shell completes commands and flags. To load it:

  bash   source <(holdfast completion bash)
  zsh    holdfast completion zsh > "${fpath[1]}/_holdfast"
  fish   holdfast completion fish > ~/.config/fish/completions/holdfast.fish`,
		Args:      oneShell,
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return (&Completion{Shell: args[0], Out: cmd.OutOrStdout()}).Run()
		},
	}
}

func oneShell(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("got %s, want one shell: bash, zsh or fish", cli.CountArgs(args))
	}
	return nil
}

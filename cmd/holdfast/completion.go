package main

import (
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/spf13/cobra"
)

// printCompletion prints the script with which a shell completes commands and flags.
func printCompletion(cmd *cobra.Command, args []string) error {
	switch root, out := cmd.Root(), cmd.OutOrStdout(); args[0] {
	case "bash":
		return root.GenBashCompletionV2(out, true)
	case "zsh":
		return root.GenZshCompletion(out)
	case "fish":
		return root.GenFishCompletion(out, true)
	}
	return cli.Usagef("no completion for %q: there is bash, zsh and fish", args[0])
}

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:       "completion bash|zsh|fish",
		Short:     "Print the completion script of a shell",
		Args:      oneShell,
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE:      printCompletion,
	}
}

func oneShell(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("got %s, want one shell: bash, zsh or fish", cli.CountArgs(args))
	}
	return nil
}

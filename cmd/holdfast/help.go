package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

//go:embed help
var helpFiles embed.FS

// readHelp gives each command what help says of it: the file that is called after it, and behind
// that the text of the command that it belongs to.
func readHelp(cmd *cobra.Command, above string) {
	path := strings.ReplaceAll(strings.TrimPrefix(cmd.CommandPath(), "holdfast "), " ", "-")
	if text, err := helpFiles.ReadFile("help/" + path + ".txt"); err == nil {
		long, example, _ := strings.Cut("\n"+strings.ReplaceAll(string(text), "\r\n", "\n"), "\nExamples:\n\n")
		cmd.Long, cmd.Example = strings.TrimSpace(long), strings.TrimRight(example, "\n")
	} else if above != "" {
		cmd.Long += "\n\n" + above
	}
	for _, below := range cmd.Commands() {
		readHelp(below, cmd.Long)
	}
}

// setHelp wraps the help of all commands at the width of the terminal that it goes to.
func setHelp(root *cobra.Command) {
	usage := root.UsageTemplate()
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		width := cli.Width(out)
		text := cmd.Long
		if text == "" {
			text = cmd.Short
		}
		if cmd.IsAdditionalHelpTopicCommand() {
			_, _ = fmt.Fprintln(out, cli.Wrap(text, width))
			return
		}
		root.SetUsageTemplate(strings.ReplaceAll(usage, ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", width)))
		_, _ = fmt.Fprintf(out, "%s\n\n%s", cli.Wrap(text, width), cmd.UsageString())
	})
}

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

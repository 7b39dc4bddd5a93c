package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/spf13/cobra"
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

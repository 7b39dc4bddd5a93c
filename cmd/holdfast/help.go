package main

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/spf13/cobra"
)

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

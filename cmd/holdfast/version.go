package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version that scripts/release builds; the linker sets it.
var release string

// Version prints what this program was built from.
type Version struct {
	Out io.Writer
}

// Run prints one line: version, commit if known, version of Go, system.
func (v *Version) Run() error {
	_, err := fmt.Fprintln(v.Out, versionLine())
	return err
}

func versionLine() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return fmt.Sprintf("holdfast %s, %s %s/%s", versionOf(info), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func versionOf(info *debug.BuildInfo) string {
	version := info.Main.Version
	if release != "" {
		return release
	}
	if version == "" || version == "(devel)" {
		version = "development version"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if commit := settings["vcs.revision"]; commit != "" {
		version += " of commit " + commit[:min(12, len(commit))]
		if settings["vcs.modified"] == "true" {
			version += " with changes"
		}
	}
	return version
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return (&Version{Out: cmd.OutOrStdout()}).Run() },
	}
}

package main

import (
	"cmp"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/spf13/cobra"
)

// release and commit are what scripts/release builds; the linker sets both. The commit ends with
// "+dirty" if the clone had changes.
var release, commit string

// A version is what is known of how this program was built.
type version struct {
	number, commit string // empty: unknown
	changed        bool   // the clone had changes
}

func ownVersion() version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(release, commit, info)
}

// versionLine is version, commit if known, version of Go, and system.
func versionLine() string {
	return fmt.Sprintf("holdfast %s, %s %s/%s", ownVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// pseudoVersion is a version that Go made up for a commit without a tag. It ends with the commit,
// and with "+dirty" if the clone had changes.
var pseudoVersion = regexp.MustCompile(`[-.]\d{14}-([0-9a-f]{12})(\+dirty)?$`)

// versionOf prefers what the linker set. A clone has the commit in its build settings. A module of
// a proxy has a version alone, which tells the commit if there is no tag.
func versionOf(release, commit string, info *debug.BuildInfo) version {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	number := strings.TrimSuffix(info.Main.Version, "+dirty")
	commit, changed := strings.CutSuffix(commit, "+dirty")
	changed = changed || settings["vcs.modified"] == "true"
	if made := pseudoVersion.FindStringSubmatch(info.Main.Version); made != nil {
		number, commit = "", cmp.Or(commit, made[1])
		changed = changed || made[2] != ""
	}
	commit = cmp.Or(commit, settings["vcs.revision"])
	if number == "(devel)" {
		number = ""
	}
	return version{cmp.Or(release, number), commit[:min(12, len(commit))], changed}
}

// String is the version for a reader.
func (v version) String() string {
	text := cmp.Or(v.number, "development version")
	switch {
	case v.commit != "":
		text += " of commit " + v.commit
	case v.number == "":
		text += ", commit unknown"
	}
	if v.changed {
		text += " with changes"
	}
	return text
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
}

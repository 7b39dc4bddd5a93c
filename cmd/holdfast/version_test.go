package main

import (
	"runtime/debug"
	"testing"
)

func TestVersionOf(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}
	for name, test := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"nothing known": {debug.BuildInfo{}, "development version"},
		"go run":        {debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "development version"},
		"go install":    {debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "v1.2.3"},
		"a checkout": {debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: commit},
			"development version of commit 0123456789ab with changes"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := versionOf(&test.info); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

package main

import (
	"runtime/debug"
	"testing"
)

func TestVersionOf(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef01234567"
	build := func(version, modified string) debug.BuildInfo {
		info := debug.BuildInfo{Main: debug.Module{Version: version}}
		if modified != "" {
			info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: id},
				{Key: "vcs.modified", Value: modified}}
		}
		return info
	}
	for name, test := range map[string]struct {
		release, commit string
		info            debug.BuildInfo
		want            string
	}{
		"nothing known":       {info: debug.BuildInfo{}, want: "development version, commit unknown"},
		"go run":              {info: build("(devel)", ""), want: "development version, commit unknown"},
		"go install of a tag": {info: build("v1.2.3", ""), want: "v1.2.3"},
		"go install of a commit": {info: build("v0.0.0-20261124043801-0123456789ab", ""),
			want: "development version of commit 0123456789ab"},
		"go install of a commit after a tag": {info: build("v1.2.4-0.20261124043801-0123456789ab", ""),
			want: "development version of commit 0123456789ab"},
		"a clone": {info: build("v0.0.0-20261124043801-0123456789ab", "false"),
			want: "development version of commit 0123456789ab"},
		"a clone with changes": {info: build("v0.0.0-20261124043801-0123456789ab+dirty", "true"),
			want: "development version of commit 0123456789ab with changes"},
		"a clone, built without a version": {info: build("(devel)", "true"),
			want: "development version of commit 0123456789ab with changes"},
		"a clone at a tag": {info: build("v1.2.3", "false"), want: "v1.2.3 of commit 0123456789ab"},
		"a clone at a tag with changes": {info: build("v1.2.3+dirty", "true"),
			want: "v1.2.3 of commit 0123456789ab with changes"},
		"a release": {release: "v1.2.3", commit: id, info: build("(devel)", ""),
			want: "v1.2.3 of commit 0123456789ab"},
		"a release for trial, of a clone with changes": {release: "v0.0.0-dev", commit: id + "+dirty",
			info: build("(devel)", ""),
			want: "v0.0.0-dev of commit 0123456789ab with changes"},
		"a release whose build settings say something else": {release: "v1.2.3", commit: id, info: build("v9.9.9", "false"),
			want: "v1.2.3 of commit 0123456789ab"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := versionOf(test.release, test.commit, &test.info).String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

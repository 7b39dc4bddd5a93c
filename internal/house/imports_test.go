package house

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport lists what each package of the root module may import of this module. A new package
// needs a line here, so that each new import is a decision.
var mayImport = map[string][]string{
	".": {
		"internal/classes", "internal/deadlock", "internal/engine", "internal/history", "internal/limits",
		"internal/logging", "internal/native", "internal/protocol", "internal/quorum", "internal/remote",
		"internal/ticketcode",
		"internal/wire", "lockinfo", "store", "telemetry"},
	"dashboard":                {".", "lockinfo"},
	"flight":                   {"."},
	"shard":                    {".", "lockinfo"},
	"internal/classes":         {},
	"internal/deadlock":        {"internal/protocol"},
	"internal/engine":          {"internal/deadlock", "internal/protocol"},
	"internal/history":         {"internal/native", "internal/protocol", "internal/wire", "lockinfo"},
	"internal/house":           {},
	"internal/limits":          {},
	"internal/logging":         {},
	"internal/native":          {"internal/protocol", "internal/wire"},
	"internal/protocol":        {},
	"internal/protocol/memory": {"internal/protocol"},
	"internal/quorum":          {"internal/protocol", "internal/wire"},
	"internal/remote":          {"internal/protocol", "internal/wire", "lockinfo"},
	"internal/testing/adaptertest": {
		".", "internal/testing/eventually", "internal/testing/fatal", "internal/testing/fault",
		"internal/testing/permissions", "internal/testing/redisserver", "store", "storetest"},
	"internal/testing/certificate": {"internal/testing/fatal"},
	"internal/testing/database":    {"internal/testing/fatal"},
	"internal/testing/eventually":  {},
	"internal/testing/fatal":       {},
	"internal/testing/fault":       {},
	"internal/testing/instant":     {"store"},
	"internal/testing/leak":        {},
	"internal/testing/leased":      {"."},
	"internal/testing/network":     {},
	"internal/testing/permissions": {".", "internal/testing/eventually", "internal/testing/fatal", "store"},
	"internal/testing/redisserver": {"internal/testing/eventually"},
	"internal/testing/states":      {".", "lockinfo"},
	"internal/ticketcode":          {"internal/engine", "internal/limits", "internal/protocol"},
	"internal/wire":                {"internal/protocol", "store"},
	"lockinfo":                     {},
	"store":                        {},
	"storetest": {
		".", "internal/testing/eventually", "internal/testing/fault", "internal/testing/leak",
		"internal/testing/leased", "lockinfo", "store"},
	"telemetry": {},
}

func TestImports(t *testing.T) {
	set, files := parsed()
	for _, file := range files {
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			at := set.Position(spec.Pos())
			if name == "crypto/sha1" && !file.test {
				t.Errorf("%s: SHA-1 fails under GODEBUG=fips140=only: write digests as constants, checked by a test",
					at)
			}
			if file.module != "." || file.test {
				continue
			}
			allowed, known := mayImport[file.dir]
			if !known {
				t.Errorf("%s: package %s is not in the table of allowed imports", at, file.dir)
				break
			}
			own, ours := strings.CutPrefix(name+"/", root+"/")
			switch {
			case ours:
				if own = path.Clean(own); !slices.Contains(allowed, own) {
					t.Errorf("%s: package %s must not import %s", at, file.dir, name)
				}
			case strings.Contains(strings.Split(name, "/")[0], "."):
				t.Errorf("%s: the root module requires nothing, not even %s", at, name)
			}
		}
	}
}

// A released module that used internal packages of the root would break when its version and the
// root's differ. Packages that only tests import are tests.
func TestReleasedModulesImportNothingInternalOfTheRoot(t *testing.T) {
	set, files := parsed()
	imported := map[string]bool{}
	for _, file := range files {
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			imported[name] = imported[name] || !file.test
		}
	}
	released := modules(t, "released")
	for _, file := range files {
		onlyTests := strings.Contains(file.dir, "/internal/") && !imported[path.Join(root, file.dir)]
		if file.module == "." || !slices.Contains(released, file.module) || file.test || onlyTests {
			continue
		}
		for _, spec := range file.Imports {
			if name, _ := strconv.Unquote(spec.Path.Value); strings.HasPrefix(name, root+"/internal/") {
				t.Errorf("%s: module %s must not import %s", set.Position(spec.Pos()), file.module, name)
			}
		}
	}
}

func TestRootRequiresNothing(t *testing.T) {
	if strings.Contains(readText(t, "go.mod"), "require") {
		t.Error("go.mod of the root module has a requirement")
	}
}

// The users of an adapter get all that it requires: the root module, one library, and what that
// library requires. Requirements of tests alone belong to a module that nobody requires, such as
// proof.
func TestAdaptersRequireOneLibrary(t *testing.T) {
	for _, adapter := range modules(t, "adapter") {
		all := slices.Sorted(slices.Values(libraries(t, adapter)))
		for _, library := range all {
			if library != all[0] && !strings.HasPrefix(library, all[0]+"/") {
				t.Errorf("%s requires %s beside %s", adapter, library, all[0])
			}
		}
	}
}

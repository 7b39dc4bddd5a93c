// Command licenses writes the licenses of all that a program of holdfast is made of into a file,
// and fails if one of them is not on the list of allowed licenses:
//
//	licenses -out THIRD_PARTY.txt [SBOM...]
//
// The licenses also go into SBOMs of CycloneDX, to the components there.
//
// It looks at the packages that the program is linked from, on each system of a release, and reads
// the files of their modules. No network is needed once the modules are fetched.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the licenses that a part may have: they ask for their text at most.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "ISC", "MIT", "Unlicense"}

// leastCoverage is how much of a file must be the text of known licenses, in percent. The rest is
// the names of authors.
const leastCoverage = 75

const own = "github.com/holdfast-go/holdfast"

const preamble = `Parts of holdfast are the work of others, under these licenses. The image also has the root
certificates of Mozilla, under the Mozilla Public License 2.0, https://mozilla.org/MPL/2.0/.
`

func main() {
	log.SetFlags(0)
	log.SetPrefix("licenses: ")
	out := flag.String("out", "", "file to write")
	dir := flag.String("dir", "cmd/holdfast", "folder of the program")
	flag.Parse()
	parts, err := listParts(*dir)
	if err != nil {
		log.Fatal(err)
	}
	var text bytes.Buffer
	text.WriteString(preamble)
	ids := map[string][]string{}
	for _, p := range parts {
		if ids[p.path], err = p.write(&text); err != nil {
			log.Fatal(err)
		}
	}
	if err := os.WriteFile(*out, text.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
	for _, path := range flag.Args() {
		if err := addToSBOM(path, ids); err != nil {
			log.Fatalf("%s: %v", path, err)
		}
	}
}

// A part is a module that a program is linked from, or the standard library.
type part struct {
	path, version string
	files         []string // with licenses and notices, sorted
}

// listParts returns the parts of the program in a folder, in the order of their paths.
func listParts(dir string) ([]part, error) {
	parts := map[string]*part{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		list := exec.Command("go", "list", "-deps", "-json=Dir,Root,Standard,Module", ".")
		list.Dir, list.Stderr = dir, os.Stderr
		list.Env = append(list.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
		text, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
			var p struct {
				Dir      string
				Root     string // of the standard library: the folder of Go
				Standard bool
				Module   *struct{ Path, Version, Dir string }
			}
			if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			path, version, root := "std", runtime.Version(), p.Root
			if p.Standard {
				p.Dir = root // below it is code that is not linked, under other licenses
			} else {
				path, version, root = p.Module.Path, p.Module.Version, p.Module.Dir
			}
			if isOwn(path) {
				continue
			}
			if parts[path] == nil {
				parts[path] = &part{path: path, version: version}
			}
			if err := parts[path].addFiles(root, p.Dir); err != nil {
				return nil, err
			}
		}
	}
	var sorted []part
	for _, path := range slices.Sorted(maps.Keys(parts)) {
		sorted = append(sorted, *parts[path])
	}
	return sorted, nil
}

func isOwn(path string) bool { return path == own || strings.HasPrefix(path, own+"/") }

var (
	isLicense = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying)([.-].*)?$`)
	isNotice  = regexp.MustCompile(`(?i)^(notice|patents)([.-].*)?$`)
)

// addFiles adds the files of a package: those in its folder and in those above it, up to a root.
func (p *part) addFiles(root, dir string) error {
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			known := isLicense.MatchString(e.Name()) || isNotice.MatchString(e.Name())
			if at, found := slices.BinarySearch(p.files, path); known && e.Type().IsRegular() && !found &&
				filepath.Ext(path) != ".go" {
				p.files = slices.Insert(p.files, at, path)
			}
		}
		if dir == root || dir == filepath.Dir(dir) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

// write writes the texts of a part, and returns the names of its licenses. It fails if the part has
// no license, or one that is unknown or not allowed.
func (p part) write(out io.Writer) (ids []string, err error) {
	var texts bytes.Buffer
	for _, path := range p.files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&texts, "\n%s\n", bytes.TrimRight(text, "\n"))
		if !isLicense.MatchString(filepath.Base(path)) {
			continue
		}
		found := licensecheck.Scan(text)
		if found.Percent < leastCoverage {
			return nil, fmt.Errorf("%s %s: %s is no known license: %.0f %% of its text", p.path, p.version, path, found.Percent)
		}
		for _, match := range found.Match {
			if match.IsURL {
				continue
			}
			if !slices.Contains(allowed, match.ID) {
				return nil, fmt.Errorf("%s %s: %s is under %s, which is none of %s", p.path, p.version, path,
					match.ID, allowed)
			}
			ids = append(ids, match.ID)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%s %s has no license", p.path, p.version)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	_, err = fmt.Fprintf(out, "\n%s\n%s %s: %s\n%s", strings.Repeat("=", 80), p.path, p.version,
		strings.Join(ids, ", "), &texts)
	return ids, err
}

// addToSBOM writes the licenses of all components into an SBOM. It fails if one is not known.
func addToSBOM(path string, ids map[string][]string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var list struct {
		Metadata   map[string]any
		Components []map[string]any
	}
	var whole map[string]any
	if err := errors.Join(json.Unmarshal(text, &list), json.Unmarshal(text, &whole)); err != nil {
		return err
	}
	if main, ok := list.Metadata["component"].(map[string]any); ok {
		main["licenses"] = licenseList([]string{"Apache-2.0"})
		whole["metadata"] = list.Metadata
	}
	for _, c := range list.Components {
		name, _ := c["name"].(string)
		found := ids[name]
		if isOwn(name) {
			found = []string{"Apache-2.0"}
		}
		if found == nil {
			return fmt.Errorf("no package of %q was found", name)
		}
		c["licenses"] = licenseList(found)
	}
	whole["components"] = list.Components
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(whole); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

// licenseList is the form of licenses in CycloneDX.
func licenseList(ids []string) (list []any) {
	for _, id := range ids {
		list = append(list, map[string]any{"license": map[string]any{"id": id}})
	}
	return list
}

package mutant

// commandMutants returns bugs in the command and in the dashboard.
func commandMutants() []Mutant {
	const cmd, page_ = "cmd/holdfast/", "dashboard/"
	return []Mutant{
		{"a ticket lost in a pipe without a reader", command("TestScripts/acquire"), []Patch{{cmd + "internal/hold/latch.go",
			"\t\tcli.OutliveReaders()\n", ""}}},
		{"a ticket lost in a closed output", command("TestScripts/acquire"), []Patch{{cmd + "internal/hold/acquire.go",
			"&& isClosed(a.Out)", "&& false"}}},
		{"the exit code of a refusal lost with its text", command("TestScripts/busy"), []Patch{{cmd + "main.go",
			"\t\tcli.OutliveReaders() // the exit code tells it too\n", ""}}},
		{"what a killed process left beside a ticket kept", Check{Module: "cmd/holdfast", Package: "./internal/hold", Test: "TestTicketFile"}, []Patch{{cmd + "internal/hold/ticketfile.go",
			"if err = os.Remove(path); err != nil", "if err = nil; err != nil"}}},
		{"a semaphore that nobody holds without its taken", facts("TestJSONFieldsThatAreAlwaysThere"), []Patch{{"lockinfo/json.go",
			"\tcase KindSemaphore:\n", "\tcase KindSemaphore:\n\t\tif i.Taken == 0 {\n\t\t\tbreak\n\t\t}\n"}}},
		{"a state read that the other fields deny", facts("TestJSONIsRefused"), []Patch{{"lockinfo/json.go",
			"is != in.State {", "is != in.State && false {"}}},
		{"the holder cut off", facts("TestCutKeepsWhatDecides"), []Patch{{"lockinfo/info.go",
			"places = []int{i.holderIndex()}", "places = []int{0}"}}},
		{"a late hold cut off", facts("TestCutKeepsWhatDecides"), []Patch{{"lockinfo/info.go",
			"late >= 0 && late != places[0]", "late < 0"}}},
		{"a remainder of a hold that was never seen not told", facts("TestCompare"), []Patch{{"lockinfo/change.go",
			"s.token != 0 && s.token != was.token", "false"}}},
		{"a hold of a mutex told as that of a writer", suite("operators/inspect_a_hold"), []Patch{{"inspect.go",
			"case kind == protocol.ReadWrite:", "case true:"}}},
		{"the stream tells something else than the library", command("TestFactsHaveOneForm"), []Patch{{"dashboard/json.go",
			"row{id, info.Summary(), hostsOf(info)}", "row{id, lockinfo.Info{Name: info.Name, Holds: info.Holds}, hostsOf(info)}"}}},
		{"a capture of the version before shown", Check{Module: "cmd/holdfast", Package: "./internal/snapshot", Test: "TestOpenRefusesInWords"},
			[]Patch{{cmd + "internal/snapshot/capture.go", "head.Version != captureVersion", "head.Version > captureVersion"}}},
		{"a stream that keeps the list", page("TestStreamsNotReadKeepLittle"), []Patch{{page_ + "stream.go",
			"size >= maxPart;", "false;"}}},
		{"answers without a bound", page("TestDocumentsNotReadAreFew"), []Patch{{page_ + "handler.go",
			"make(chan struct{}, maxDocuments)", "make(chan struct{}, 1000)"}}},
		{"a stream that misses the end of a name", page("TestStreamSendsOnlyDifferences"), []Patch{{page_ + "stream.go",
			"gone.poll > c.begun &&", "gone.poll > c.begun+1 &&"}}},
		{"a slow stream that is not told that it missed too much", page("TestStreamThatIsSlow"), []Patch{{page_ + "stream.go",
			"if c.begun < r.forgotten {", "if false {"}}},
	}
}

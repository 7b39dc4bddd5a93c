package dashboard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dashboard"
)

// The page is a handler among others. Its URLs are relative, so any prefix will do.
func ExampleHandler() {
	var client *holdfast.Client // the program's own, which holdfast.New made
	mux := http.NewServeMux()
	mux.Handle("/locks/", http.StripPrefix("/locks", dashboard.Handler(client, nil)))

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/locks/", nil))
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}

// Package scrape tests the files for Prometheus and Grafana in deploy/: the metrics in them are
// those of promholdfast, and a real Prometheus that scrapes a real program has data for each query.
package scrape

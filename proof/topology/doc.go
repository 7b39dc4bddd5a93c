// Package topology tests clients while replicas, Sentinel and a Cluster change under them, on real
// servers. It has tests alone. Most of them take long and run with HOLDFAST_PROOF=1.
package topology

package main

import "github.com/spf13/cobra"

// newURLs is a topic of help, and no command.
func newURLs() *cobra.Command {
	return &cobra.Command{
		Use:   "urls",
		Short: "The forms of --redis and REDIS_URL",
		Long: `The servers are named by --redis, or else by the variable REDIS_URL. Other users of this host can
read a password on a command line, and cannot read one in the variable.

One server:

  redis://USER:PASSWORD@HOST:PORT/DB       PORT is 6379 and DB is 0 unless given
  unix:///PATH?db=N                        a socket on this host

One server with TLS. Its certificate must be for HOST, and be signed by an
authority of the system or of --tls-ca:

  rediss://USER:PASSWORD@HOST:PORT/DB

Sentinel, the master that these sentinels call MASTER. The login is for the
servers; sentinels have their own in the options:

  redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/MASTER/DB
  redis+sentinel://HOST,HOST/MASTER?sentinel_username=U&sentinel_password=P
  rediss+sentinel://...                    with TLS; PORT is 26379 unless given

Cluster, by some of its nodes:

  redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT
  rediss+cluster://...                     with TLS

A quorum of 3, 5, 7 or 9 independent masters:

  --redis redis://a --redis redis://b --redis redis://c
  quorum:redis://a,redis://b,redis://c     the same in one URL, for REDIS_URL

In a user or password, percent-encode what is neither a letter nor a digit: @ is %40, / is %2F. After
a ?, options of go-redis may follow, such as dial_timeout=2s. A URL that cannot be read is never
shown, as any part of it may be the password.`,
	}
}

package mutant

// fenceMutants returns bugs in package fence, as SQLite and Redis show them.
func fenceMutants() []Mutant {
	const sql, redis = "fence/sql.go", "fence/redis.go"
	fence := func(name string) Check { return Check{Module: "proof", Package: "./fence", Test: name} }
	return []Mutant{
		patched("fence: the last token wins",
			fence("TestTokenInEachRowMissesTheRowsThatTheNewHolderHasNotTouched/SQLite"), sql,
			"max(token, excluded.token)", "excluded.token"),
		patched("fence: an equal token is late", fence("TestSQLRefusesSmallerTokensAlone/SQLite"), sql,
			"err == nil && token < largest", "err == nil && token <= largest"),
		patched("fence: the transaction goes on", fence("TestSQLRefusesSmallerTokensAlone/SQLite"), sql,
			"		_ = tx.Rollback() //", "		//"),
		patched("fence: Redis does not compare", fence("TestRedisScriptRefusesSmallerTokensAlone"), redis,
			"if mine < largest then", "if false then"),
		patched("fence: Redis forgets the token", fence("TestRedisScriptRefusesSmallerTokensAlone"), redis,
			"redis.call('SET', KEYS[1], ARGV[1])\n", ""),
		patched("fence: Redis takes what is no token", fence("TestRedisScriptRefusesWhatIsNoToken"), redis,
			"string.match(text, '^[1-9]%d*$') and tonumber(text)", "tonumber(text)"),
		patched("fence: Redis takes a fence that is no token", fence("TestRedisScriptRefusesWhatIsNoToken"), redis,
			"token(fence) or not fence and 0", "token(fence) or 0"),
	}
}

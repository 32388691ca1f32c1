-- A wrong password for an e-mail without an account writes a row, too, so that the time of the
-- response is the same whether the account exists. Such rows belong to the tenant of anonymous
-- requests and to no user; at most 100 of them are kept (api/failed_sign_ins.c).
ALTER TABLE failed_sign_in ALTER COLUMN user_id DROP NOT NULL;

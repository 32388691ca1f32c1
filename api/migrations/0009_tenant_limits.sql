-- Limits of a team on continuous profiles and questions, by the names of api/tenant_limits.h; what
-- is absent is the server's setting.
ALTER TABLE tenant ADD COLUMN limits jsonb NOT NULL DEFAULT '{}'
    CHECK (jsonb_typeof(limits) = 'object');

-- What readers were granted on the old tables and views they are granted on the new ones, before these take the
-- name.
DO $$
DECLARE
    given record;
BEGIN
    FOR given IN
        SELECT format('TABLE tidelog_rebuild.%I', c.relname) AS object, a.grantee, a.privilege_type, a.is_grantable
        FROM pg_class c, aclexplode(c.relacl) a
        WHERE c.relnamespace = to_regnamespace('tidelog')
            AND a.grantee <> c.relowner
            AND to_regclass(format('tidelog_rebuild.%I', c.relname)) IS NOT NULL
            AND c.relkind IN ('r', 'v')
        UNION ALL
        SELECT 'SCHEMA tidelog_rebuild', a.grantee, a.privilege_type, a.is_grantable
        FROM pg_namespace n, aclexplode(n.nspacl) a
        WHERE n.nspname = 'tidelog' AND a.grantee <> n.nspowner
    LOOP
        EXECUTE format(
            'GRANT %s ON %s TO %s%s',
            given.privilege_type,
            given.object,
            CASE given.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(given.grantee)) END,
            CASE WHEN given.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END
        );
    END LOOP;
END
$$;

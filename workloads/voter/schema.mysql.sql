-- name: keys
ANALYZE TABLE contestants, area_code_state, votes;

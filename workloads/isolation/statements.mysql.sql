-- name: append
UPDATE lists SET elements = concat(elements, :value) WHERE id = :id;

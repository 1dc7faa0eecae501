-- name: insert_text
INSERT INTO text (old_text, old_flags, old_page) VALUES (:text, 'utf-8', :page) RETURNING old_id AS id;

-- name: insert_revision
INSERT INTO revision (rev_page, rev_text_id, rev_comment, rev_user, rev_user_text, rev_timestamp, rev_minor_edit,
  rev_deleted, rev_len, rev_parent_id)
VALUES (:page, :text_id, :comment, :user, :user_text, CURRENT_TIMESTAMP, :minor, 0, :length, :parent)
RETURNING rev_id AS id;

-- name: page
SELECT page_id, page_latest, page_len, page_restrictions, page_is_redirect, page_touched
FROM page WHERE page_namespace = :namespace AND page_title = :title;

-- name: restrictions
SELECT pr_type, pr_level, pr_cascade, pr_expiry FROM page_restrictions WHERE pr_page = :page;

-- name: blocks
SELECT ipb_id, ipb_anon_only, ipb_expiry FROM ipblocks WHERE ipb_address = :address AND ipb_user = :user;

-- name: latest_revision
SELECT rev_id, rev_text_id, rev_comment, rev_user, rev_user_text, rev_timestamp, rev_minor_edit, rev_len
FROM page JOIN revision ON rev_page = page_id AND rev_id = page_latest WHERE page_id = :page;

-- name: text
SELECT old_text, old_flags FROM text WHERE old_id = :text_id;

-- name: user
SELECT user_name, user_real_name, user_email, user_options, user_touched, user_editcount FROM useracct
WHERE user_id = :user;

-- name: groups
SELECT ug_group FROM user_groups WHERE ug_user = :user;

-- name: watch
INSERT INTO watchlist (wl_user, wl_namespace, wl_title, wl_notificationtimestamp)
VALUES (:user, :namespace, :title, NULL) ON CONFLICT DO NOTHING;

-- name: unwatch
DELETE FROM watchlist WHERE wl_user = :user AND wl_namespace = :namespace AND wl_title = :title;

-- name: touch_user
UPDATE useracct SET user_touched = CURRENT_TIMESTAMP WHERE user_id = :user;

-- name: insert_text
INSERT INTO text (old_text, old_flags, old_page) VALUES (:text, 'utf-8', :page);

-- name: insert_revision
INSERT INTO revision (rev_page, rev_text_id, rev_comment, rev_user, rev_user_text, rev_timestamp, rev_minor_edit,
  rev_deleted, rev_len, rev_parent_id)
VALUES (:page, :text_id, :comment, :user, :user_text, CURRENT_TIMESTAMP, :minor, 0, :length, :parent);

-- name: update_page
UPDATE page SET page_latest = :revision, page_len = :length, page_touched = CURRENT_TIMESTAMP
WHERE page_id = :page AND page_latest = :previous;

-- name: insert_change
INSERT INTO recentchanges (rc_timestamp, rc_cur_time, rc_user, rc_user_text, rc_namespace, rc_title, rc_comment,
  rc_minor, rc_bot, rc_new, rc_cur_id, rc_this_oldid, rc_last_oldid, rc_type, rc_moved_to_ns, rc_moved_to_title,
  rc_patrolled, rc_ip, rc_old_len, rc_new_len, rc_deleted, rc_logid)
VALUES (CURRENT_TIMESTAMP, CURRENT_TIMESTAMP, :user, :user_text, :namespace, :title, :comment, :minor, 0, 0, :page,
  :revision, :previous, 0, 0, '', 1, :address, :old_length, :new_length, 0, 0);

-- name: watcher
SELECT wl_user FROM watchlist
WHERE wl_namespace = :namespace AND wl_title = :title AND wl_user <> :user AND wl_notificationtimestamp IS NULL
LIMIT 1;

-- name: notify
UPDATE watchlist SET wl_notificationtimestamp = CURRENT_TIMESTAMP
WHERE wl_namespace = :namespace AND wl_title = :title AND wl_user <> :user AND wl_notificationtimestamp IS NULL;

-- name: insert_log
INSERT INTO logging (log_type, log_action, log_timestamp, log_user, log_namespace, log_title, log_comment, log_params,
  log_deleted, log_user_text, log_page)
VALUES ('patrol', 'patrol', CURRENT_TIMESTAMP, :user, :namespace, :title, '', '', 0, :user_text, :page);

-- name: count_edit
UPDATE useracct SET user_editcount = user_editcount + 1, user_touched = CURRENT_TIMESTAMP WHERE user_id = :user;

-- name: latest_is_newest
SELECT page_id, page_latest, newest, page_len, length(old_text) AS text_length FROM page
LEFT JOIN (SELECT rev_page, max(rev_id) AS newest FROM revision GROUP BY rev_page) AS n ON n.rev_page = page_id
LEFT JOIN revision AS r ON r.rev_id = page_latest
LEFT JOIN text ON old_id = r.rev_text_id
WHERE newest IS NULL OR newest <> page_latest OR old_id IS NULL OR page_len <> length(old_text) LIMIT 10;

-- name: edits_are_counted
SELECT changes, logged, counted, CAST(:tally_edits AS decimal(30)) AS acknowledged
FROM (SELECT count(*) AS changes FROM recentchanges) AS c, (SELECT count(*) AS logged FROM logging) AS l,
  (SELECT sum(user_editcount) AS counted FROM useracct) AS u
WHERE changes <> logged OR changes <> counted
  OR abs(changes - CAST(:tally_edits AS decimal(30))) > CAST(:uncertain_edits AS decimal(30));

-- name: revisions_follow_each_other
SELECT r.rev_parent_id, count(*) AS children, count(p.rev_id) AS of_the_page FROM revision AS r
LEFT JOIN revision AS p ON p.rev_id = r.rev_parent_id AND p.rev_page = r.rev_page
WHERE r.rev_parent_id IS NOT NULL
GROUP BY r.rev_parent_id HAVING count(*) > 1 OR count(p.rev_id) < 1 LIMIT 10;

-- name: watchers_are_users
SELECT wl_user, wl_title FROM watchlist LEFT JOIN useracct ON user_id = wl_user WHERE user_id IS NULL LIMIT 10;

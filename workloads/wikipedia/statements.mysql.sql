-- name: watch
INSERT IGNORE INTO watchlist (wl_user, wl_namespace, wl_title, wl_notificationtimestamp)
VALUES (:user, :namespace, :title, NULL);

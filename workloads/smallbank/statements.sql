-- name: find_account
SELECT custid FROM account WHERE name = :name;

-- name: saving
SELECT balance FROM saving WHERE custid = :custid;

-- name: checking
SELECT balance FROM checking WHERE custid = :custid;

-- name: add_saving
UPDATE saving SET balance = balance + :amount WHERE custid = :custid;

-- name: add_checking
UPDATE checking SET balance = balance + :amount WHERE custid = :custid;

-- name: money_is_conserved
SELECT savings, checkings, began, CAST(:tally_paid_in AS decimal(30, 6)) AS paid_in
FROM (SELECT sum(balance) AS savings FROM saving) AS s,
  (SELECT sum(balance) AS checkings FROM checking) AS c,
  (SELECT sum(20000 + custid * 7919 % 40001 + custid * 104729 % 40001) AS began FROM account) AS a
WHERE abs(savings + checkings - began - CAST(:tally_paid_in AS decimal(30, 6)))
  > 0.005 + CAST(:uncertain_paid_in AS decimal(30, 6));

-- name: accounts_are_whole
SELECT name, a.custid FROM account AS a
LEFT JOIN saving AS s ON s.custid = a.custid
LEFT JOIN checking AS c ON c.custid = a.custid
WHERE s.balance IS NULL OR c.balance IS NULL LIMIT 10;
